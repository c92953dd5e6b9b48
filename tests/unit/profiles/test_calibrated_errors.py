from sim.profiles.calibrated_errors import ErrorRegime, ErrorTable


def regime(engine=None, gpus=(), load=None):
    ranges = {"max_input_tokens": 1000, "max_output_tokens": 1000, "max_running": 64}
    return ErrorRegime(engine=engine, gpus=gpus, load=load, rows=50, factors={"ttft": 1.5}, **ranges)


def test_the_most_particular_regime_counts():
    anything, busy = regime(), regime(load="busy")
    vllm, vllm_busy = regime("vllm"), regime("vllm", load="busy")
    h100 = regime("vllm", ("H100",))
    table = ErrorTable(name="serving", sources={"all": "test"}, regimes=(anything, busy, vllm, vllm_busy, h100))
    assert table.of("vllm", "H100", "busy") is h100
    assert table.of("vllm", "L4", "busy") is vllm_busy
    assert table.of("vllm", "L4", "light") is vllm
    assert table.of("sglang", "L4", "busy") is busy
    assert table.of("sglang", "L4", "light") is anything


def test_there_may_be_none():
    table = ErrorTable(name="serving", sources={"all": "test"}, regimes=(regime("vllm"),))
    assert table.of("sglang", "L4", "light") is None
