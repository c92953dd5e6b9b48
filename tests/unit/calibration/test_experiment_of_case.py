import pytest

from calibration.cases.names import gpu_name
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import experiment_of_case

ROW = {
    "case_id": "one",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "gpu": "H100-80GB-SXM",
    "n_gpus": "1",
    "tp": "1",
    "mode": "agg",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "weight_dtype": "bf16",
    "input_len": "1024",
    "output_len": "128",
    "load_type": "concurrency",
    "load_value": "16",
    "quality": "ok",
}


def experiment(**cells):
    return experiment_of_case(ServingCase(ROW | cells)).experiment


def reason(**cells):
    with pytest.raises(NotModelledError) as caught:
        experiment(**cells)
    return str(caught.value)


def test_inferencex_draws_lengths_between_eight_tenths_and_all_of_the_nominal_one():
    lengths = experiment(len_distribution="uniform 0.8-1.0 x nominal (InferenceX)").workload.lengths
    assert (lengths.input_tokens.low, lengths.input_tokens.high) == (819, 1024)
    assert (lengths.output_tokens.low, lengths.output_tokens.high) == (102, 128)


def test_answers_of_one_length_vary_in_a_closed_loop_and_not_in_a_static_batch():
    lengths = experiment(len_distribution="fixed").workload.lengths
    assert (lengths.output_tokens.low, lengths.output_tokens.high) == (109, 147)
    assert lengths.input_tokens.low == lengths.input_tokens.high == 1024
    static = experiment(len_distribution="fixed", load_type="batch")
    assert (static.workload.lengths.kind, static.workload.lengths.output_tokens) == ("fixed", 128)
    assert (static.engine.scheduler.kind, static.engine.scheduler.batch_size) == ("static", 16)


def test_a_client_may_cap_rate_and_concurrency_together():
    arrivals = experiment(rate_cap_rps="10.0", num_requests="100").workload.arrivals
    assert (arrivals.kind, arrivals.concurrency, arrivals.request_rate) == ("closed_loop", 16, 10)
    capped = experiment(load_type="rate", load_value="4", inflight_cap="256").workload.arrivals
    assert (capped.kind, capped.rate, capped.max_concurrency) == ("poisson", 4, 256)
    constant = experiment(load_type="rate", load_value="4", arrival="inference-perf constant rate (open loop)")
    assert constant.workload.arrivals.kind == "constant"
    bursty, unclear = (
        experiment(load_type="rate", load_value="4", arrival=f"gamma, burstiness {value}").workload.arrivals
        for value in ("0.25", "0")
    )
    assert (bursty.kind, bursty.cv, unclear.kind) == ("gamma", 2.0, "poisson")


def test_no_more_users_than_requests():
    assert experiment(load_value="128", num_requests="100").workload.arrivals.concurrency == 100


def test_ten_requests_a_user_where_the_number_is_not_stated_and_no_more_than_a_stated_cap():
    assert experiment().workload.num_requests == 160
    prepared = experiment_of_case(ServingCase(ROW | {"load_value": "1024", "max_model_len": "2048"}))
    assert prepared.experiment.workload.num_requests == 2560
    assert "2560 of 10240 requests are simulated" in prepared.assumed


def test_experts_of_gpt_oss_with_tensorrt_llm_on_h200_were_on_all_ranks_before_rows_said_so():
    row = {"case_id": "sil-one", "engine": "trtllm", "engine_version": "", "gpu": "H200-SXM-141GB", "tp": "4"}
    row |= {"n_gpus": "4", "ep": "1", "date": "2025-11-02", "model": "openai/gpt-oss-120b", "weight_dtype": "nvfp4"}
    ranks = [
        experiment(**row | cells).deployment.parallelism.ep
        for cells in ({}, {"date": "2025-12-15"}, {"gpu": "B200-SXM"}, {"engine": "vllm"}, {"tp": "1", "n_gpus": "1"})
    ]
    assert ranks == [4, 1, 1, 1, 1]


def test_ranks_that_were_multiplied_by_expert_ranks_are_divided_again():
    moe = {"model": "deepseek-ai/DeepSeek-R1", "weight_dtype": "fp8", "gpu": "H200-SXM-141GB", "engine": "trtllm"}
    wrong = moe | {"tp": "64", "n_gpus": "64", "ep": "8", "notes": "moe_quant=fp8; moe_tp=8"}
    parallelism = experiment(**wrong).deployment.parallelism
    assert (parallelism.tp, parallelism.ep) == (8, 8)
    right = moe | {"tp": "8", "n_gpus": "8", "ep": "8", "notes": "moe_quant=fp8; moe_tp=1"}
    assert experiment(**right).deployment.parallelism.tp == 8


def test_repeating_prompts_weigh_as_much_as_in_the_whole_run():
    shared = experiment(
        load_type="rate",
        load_value="5",
        num_requests="20000",
        prefix_hit_share="0.99",
        shared_prefix_tokens="100 (10x10 repeating prompts)",
        prefix_caching="True",
    )
    assert shared.workload.num_requests == 2000
    assert (shared.workload.shared_prefix.tokens, shared.workload.shared_prefix.groups) == (1014, 10)
    assert shared.engine.prefix_caching is True


def test_the_logged_pool_replaces_the_memory_plan():
    engine = experiment(kv_blocks="18038", kv_block_size="16", max_num_seqs="256").engine
    assert (engine.num_gpu_blocks_override, engine.block_size, engine.scheduler.max_num_seqs) == (18038, 16, 256)


@pytest.mark.parametrize(
    ("cells", "kv"),
    [
        ({"engine": "trtllm", "weight_dtype": "fp8"}, "fp8"),
        ({"engine": "vllm", "weight_dtype": "fp8"}, None),
        ({"engine": "vllm", "kv_dtype": "fp16"}, "bf16"),
    ],
)
def test_kv_type_is_as_stated_or_as_the_recipes_are_known_to_be(cells, kv):
    assert experiment(**cells).deployment.quantization.kv_cache == kv


def test_a_date_stands_in_for_a_version():
    assert experiment(engine_version="", date="2025-12-24").engine.version == "0.13"
    assert experiment(engine_version="", date="2025-04").engine.version == "0.8"
    assert experiment(engine_version="", date="2024").engine.version == "0.5"
    assert experiment(engine_version="", date="2023-01-01").engine.version == "0.2"
    assert experiment(engine_version="", date="").engine.version == "latest"
    assert experiment(engine_version="~0.8 (Mar-Apr 2025)").engine.version == "0.8"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"mode": "disagg+spec"}, "mode disagg+spec is not modelled"),
        ({"load_value": ""}, "sums up several loads"),
        ({"quality": "anomalous"}, "anomalous"),
        ({"gpu": "Pi 400 - 4GB [CPU]"}, "no hardware profile"),
        ({"model": "LLaMA 8000B"}, "no model profile"),
        ({"engine": "OpenLLM"}, "engine 'OpenLLM' is not modelled"),
        ({"input_len": ""}, "lengths of prompts and answers are not stated"),
        ({"tp": "", "n_gpus": ""}, "not stated: tp; if you know: --assume tp=N"),
        ({"tp": "", "n_gpus": "", "gpu": ""}, "not stated: gpu, tp; if you know: --assume gpu=H100-SXM-80GB "),
        ({"weight_dtype": "bitsandbytes 4bit"}, "weights of type"),
        ({"load_type": "rate", "load_value": "fast"}, "not a number"),
    ],
)
def test_what_cannot_be_repeated_is_refused_with_the_reason(cells, words):
    assert words in reason(**cells)


def parallelism(**cells):
    return experiment(**{"model": "deepseek-ai/DeepSeek-R1", "weight_dtype": "fp8", "n_gpus": "8"} | cells).deployment


@pytest.mark.parametrize(
    ("cells", "patience"),
    [
        ({"case_id": "sil-1"}, 60),
        ({"notes": "InferenceX CI run; dp_attention=true"}, 60),
        ({"notes": "somebody else's"}, None),
        ({"notes": "InferenceX CI run", "dp": "1"}, None),
    ],
)
def test_inferencex_lets_prompts_wait_for_those_of_other_ranks(cells, patience):
    of = {"model": "deepseek-ai/DeepSeek-R1", "weight_dtype": "fp8", "n_gpus": "8", "tp": "8", "ep": "8", "dp": "dpa"}
    scheduler = experiment(**of | {"engine": "tensorrt-llm", "engine_version": "1.1"} | cells).engine.scheduler
    assert scheduler.attention_dp_timeout_iters == patience


def test_attention_data_parallel_ranks_are_counted_once():
    gathered = parallelism(dp="dpa", tp="8", ep="8").parallelism
    assert (gathered.tp, gathered.dp, gathered.ep) == (1, 8, 8)
    spread = parallelism(dp="8", tp="1", ep="8", notes="moe_tp=1").parallelism
    assert (spread.tp, spread.dp, spread.ep) == (1, 8, 8)
    twice = parallelism(dp="64", tp="1", ep="8", n_gpus="64", notes="moe_tp=8").parallelism
    assert (twice.tp, twice.dp, twice.ep) == (1, 8, 8)
    both = parallelism(dp="8", tp="8", ep="").parallelism
    assert (both.tp, both.dp, both.ep) == (1, 8, 1)
    dense = experiment(dp="2").deployment
    assert (dense.replicas, dense.parallelism.dp) == (2, 1)


def test_cards_have_a_bridge_only_where_somebody_says_so():
    assert experiment(gpu="H100-PCIe-80GB", tp="2").deployment.interconnect == "pcie"
    assert experiment(gpu="H100-PCIe-80GB", tp="1").deployment.interconnect == "auto"
    assert experiment(gpu="H100-80GB-SXM", tp="2").deployment.interconnect == "auto"


def test_two_accelerators_that_read_faster_than_pcie_cards_could_are_none():
    unstated = "H100-80GB(variant unstated; TPOT implies PCIe)"
    assert experiment(gpu=unstated, tp="1").deployment.gpu == "H100-PCIe-80GB"
    assert experiment(gpu=unstated, tp="2").deployment.gpu == "H100-SXM-80GB"


def test_gpt_oss_multiplies_in_eight_bits_where_the_recipe_asks_for_it():
    cells = {"model": "openai/gpt-oss-120b", "weight_dtype": "nvfp4", "gpu": "B200-SXM", "engine_version": "0.15.1"}
    assert experiment(**cells, case_id="sil-1").deployment.quantization.activations == "fp8"
    assert experiment(**cells, case_id="pub-1").deployment.quantization.activations is None


@pytest.mark.parametrize(
    ("version", "gpu", "source", "kernels"),
    [
        ("0.11.0", "H100-SXM-80GB", "", "marlin"),  # no others came along
        ("0.11.2", "H100-SXM-80GB", "InferenceX", None),  # its scripts do not ask yet
        ("0.18.0", "H200-SXM-141GB", "github:SemiAnalysisAI/InferenceX", "marlin"),
        ("0.22.0", "H200-SXM-141GB", "github:somebody/inferencex-profiling", "marlin"),
        ("0.18.0", "H200-SXM-141GB", "github:somebody/else", None),
        ("0.18.0", "B200-SXM", "InferenceX", None),
    ],
)
def test_marlin_multiplies_mxfp4_on_hopper_by_default_in_old_releases_and_where_inferencex_asks(
    version, gpu, source, kernels
):
    cells = {"model": "openai/gpt-oss-120b", "weight_dtype": "fp4 (mxfp4 ckpt)"}
    found = experiment(**cells, engine_version=version, gpu=gpu, source=source)
    assert found.cost_model.kernels == kernels


def test_marlin_is_not_asked_for_other_weights_or_engines():
    cells = {"engine_version": "0.18.0", "source": "InferenceX"}
    assert experiment(**cells).cost_model.kernels is None
    other = {"model": "openai/gpt-oss-120b", "weight_dtype": "mxfp4", "engine": "sglang", "engine_version": "0.5.9"}
    assert experiment(**other, source="InferenceX").cost_model.kernels is None


@pytest.mark.parametrize(
    ("prompt", "answer", "sent"),
    [("0", "128", (1, 128)), ("512", "0", (512, 1)), ("131072", "0", (131071, 1)), ("0", "131072", (1, 131071))],
)
def test_a_prompt_or_an_answer_alone_has_one_token_of_the_other(prompt, answer, sent):
    lengths = experiment(input_len=prompt, output_len=answer, load_type="batch", load_value="1").workload.lengths
    assert (lengths.input_tokens, lengths.output_tokens) == sent


def test_deepspeed_is_two_engines():
    assert experiment(engine="Deepspeed", gpu="Gaudi2", load_type="batch").engine.kind == "deepspeed"
    assert experiment(engine="Deepspeed-MII", load_type="rate").engine.scheduler.kind == "chunked_prefill"
    assert experiment(gpu="Intel PVC GPU").deployment.gpu == "Max-1550"


def test_a_stated_mix_becomes_classes_with_the_mean_that_was_counted():
    mixed = {"notes": "stage=all workload=50% 256/128 + 50% 4096/100", "input_len": "2092.8", "load_type": "rate"}
    workload = experiment(**mixed).workload
    parts = [(each.share, each.lengths.input_tokens, each.lengths.output_tokens) for each in workload.classes]
    assert parts == [(0.5, 246, 128), (0.5, 3939, 100)]
    assert sum(share * prompt for share, prompt, _ in parts) == pytest.approx(2092.8, abs=1)
    assert experiment(**mixed).engine.max_model_len > 3939 + 128
    assert not experiment(notes="workload=1024/128 2 tenants").workload.classes


def test_the_checkpoints_in_eight_bits_that_qwen_publishes_have_scales_of_blocks():
    assert experiment(model="Qwen/Qwen3-32B", weight_dtype="fp8").deployment.quantization.weights == "fp8_block"
    assert experiment(weight_dtype="fp8").deployment.quantization.weights == "fp8"


def test_the_context_of_a_batch_of_llama_cpp_holds_all_of_it():
    llama = {"engine": "llama.cpp", "load_type": "batch", "load_value": "8", "gpu": "DGX-Spark GB10 128GB"}
    assert experiment(**llama).engine.num_gpu_blocks_override == 8 * (1024 + 128 + 1)
    assert experiment(**llama | {"load_type": "concurrency"}).engine.num_gpu_blocks_override is None


def test_gguf_files_are_of_eight_bits_unless_they_were_trained_for_four():
    gguf = {"engine": "llama.cpp", "weight_dtype": "gguf (MXFP4 for gpt-oss, other see model)", "load_type": "batch"}
    assert experiment(**gguf).deployment.quantization.weights == "q8_0"
    four = experiment(**gguf | {"model": "ggml-org/gemma-3-4b-it-qat-GGUF"})
    assert four.deployment.quantization.weights == "q4_k_m"


def test_prompts_are_not_found_again_by_a_version_that_may_be_before_that():
    shared = {"len_distribution": "sonnet (input +-3%, fixed output; shared 200-token prefix)"}
    assert experiment(**shared).engine.prefix_caching
    guessed = shared | {"engine_version": "~0.8 (Mar-Apr 2025)"}
    assert not experiment(**guessed, date="2025-03-25").engine.prefix_caching
    assert experiment(**guessed, date="2025-04-20").engine.prefix_caching


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("NVIDIA-H100-PCIe", "H100-PCIe-80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA-GeForce-RTX-4090", "RTX-4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("Tesla T4", "T4"),
    ],
)
def test_a_card_is_known_by_the_name_that_its_driver_prints(cell, name):
    assert gpu_name(cell) == name


def test_a_card_that_is_misspelt_is_suggested():
    with pytest.raises(NotModelledError, match=r"did you mean 'RTX-4090'"):
        gpu_name("RTX4090")
