"""Changes that are offered where a deployment does not fit."""

from handmade_memory import GIB, GQA, card, layer, limits, model, plan_of

from sim.memory import nearest_fits, smallest_tp

OF = model(layer())
WEIGHTS = plan_of(OF).weights_bytes


def test_nothing_fits_and_more_ranks_do():
    made = plan_of(OF, on=card(0.8 * WEIGHTS / GIB, gpus_per_node=4))
    assert smallest_tp(made.deployment) == 2
    changes = nearest_fits(made)
    assert "tp 2" in changes
    assert "fp8 weights" in changes


def test_every_offered_change_is_needed_and_fits():
    tight = card((WEIGHTS + 50 * 2**20) / GIB)
    made = plan_of(OF, on=tight, knobs=limits(max_model_len=4096, min_sequences=8, max_num_batched_tokens=1))
    changes = nearest_fits(made, limit=20)
    length = next(int(change.split()[1].replace(",", "")) for change in changes if change.startswith("max_model_len"))
    held = next(int(change.split()[0]) for change in changes if "at once" in change)
    assert not made.fits
    shorter = limits(max_model_len=length, min_sequences=8, max_num_batched_tokens=1)
    assert plan_of(OF, on=tight, knobs=shorter).fits
    fewer = limits(max_model_len=4096, min_sequences=held, max_num_batched_tokens=1)
    assert plan_of(OF, on=tight, knobs=fewer).fits


def test_a_tp_that_cannot_be_cut_has_the_nearest_on_either_side():
    made = plan_of(OF, on=card(4 * WEIGHTS / GIB, gpus_per_node=8), tp=3)
    assert [change for change in nearest_fits(made) if change.startswith("tp")] == ["tp 2", "tp 4"]


def test_utilization_is_offered_where_it_is_enough():
    made = plan_of(OF, on=card(1.4 * WEIGHTS / GIB), knobs=limits(gpu_memory_utilization=0.7, max_model_len=64))
    assert "gpu_memory_utilization 0.95" in nearest_fits(made)


def test_other_cards_of_the_vendor_that_are_no_slower_come_first():
    own = card(0.5 * WEIGHTS / GIB, gpus_per_node=1)
    others = [
        card(2, name="other vendor", vendor="AMD"),
        card(8, name="large"),
        card(4, name="middle"),
        card(3, name="slow").model_copy(update={"memory_bytes_per_s": 0.1 * own.memory_bytes_per_s}),
        card(0.001, name="small"),
    ]
    made = plan_of(OF, on=own)
    assert nearest_fits(made, others)[-2:] == ["1 x middle", "1 x large"]


def test_ranks_that_do_not_divide_are_not_offered():
    odd = model(layer(GQA.model_copy(update={"heads": 1, "kv_heads": 1})))
    assert smallest_tp(plan_of(odd, on=card(0.8 * WEIGHTS / GIB, gpus_per_node=8)).deployment) is None
