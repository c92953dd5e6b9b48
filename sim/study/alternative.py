"""What the best deployment of an accelerator takes, costs and does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sim.search.cheapest import Cheapest
from sim.simulate.prices import gpu_price
from sim.slo import SLO
from sim.study.decision import Decision
from sim.study.laboratory import altered
from sim.study.measure import Measured
from sim.sweep import Settings

if TYPE_CHECKING:
    from sim.study.fleet import Fleet

__all__ = ["Alternative", "Dropped", "alternative_of", "ranked"]

_HOURS_A_MONTH = 730.0
_MTOK = 1e6


@dataclass(frozen=True, slots=True)
class Dropped:
    """A deployment that is not the best of its accelerator.

    *stage* is ``memory``, ``impossible`` (it cannot be run as written), ``bound`` (by the cost of an iteration alone),
    ``missed`` (the SLO, in simulation) or ``dominated`` (another one takes fewer accelerators); *margin* the logarithm
    of bound over value of the objective it misses, where it was simulated.
    """

    gpu: str
    label: str
    settings: Settings
    stage: str
    reason: str
    margin: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """The best deployment of one accelerator.

    Attributes
    ----------
    replicas
        That keep the SLO with the confidence asked for, `spare` ones not counted.
    gpus
        Accelerators of all of them, spare ones included.
    nominal_gpus, gpus_interval
        What the model itself says, without spares, and its 90 % interval; None: beyond the most replicas considered.
    usd_per_hour, usd_per_month
        Rent of the accelerators; None without a price. A month has 730 hours.
    usd_per_mtok, usd_per_mtok_at_peak, usd_per_mtok_total
        A million output tokens at the mean load, and at the peak; a million of input and output together, at the mean.
    usd_per_mtok_interval
        90 %: the first of these at the ends of `gpus_interval`.
    kw
        At the peak, of servers and cooling [kW]; None if not known.
    peak, mean
        The run at the peak and at the mean load, on `replicas`.
    objective
        Which objective is closest to its bound at the peak.
    over
        Limits that it exceeds, in words.
    why
        Why it is the first one, or why not.
    turning_usd_per_hour
        Price of its accelerator below which it is the first one, all other prices as they are; None: not known, or it
        always is.
    """

    gpu: str
    label: str
    settings: Settings
    replicas: int
    spare: int
    gpus: int
    nominal_gpus: int
    gpus_interval: tuple[int, int | None]
    price: str
    gpu_hour_usd: float | None
    usd_per_hour: float | None
    usd_per_month: float | None
    usd_per_mtok: float | None
    usd_per_mtok_at_peak: float | None
    usd_per_mtok_total: float | None
    usd_per_mtok_interval: tuple[float, float | None] | None
    kw: float | None
    objective: str
    sure: bool
    slo: SLO
    peak: Measured
    mean: Measured
    over: tuple[str, ...]
    why: str = ""
    turning_usd_per_hour: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, in a fixed order."""
        plain = asdict(self)
        for name in ("peak", "mean"):
            run: Measured = getattr(self, name)
            plain[name] = run.as_dict(self.slo)
        del plain["slo"]
        return plain


def alternative_of(
    fleet: Fleet, search: Cheapest, decision: Decision, *, nominal: int, replicas: int, low: int, high: int | None
) -> Alternative:
    """Return what *replicas* of *fleet* cost and do; *low* and *high* bound their number at 90 %."""
    candidate, load, base = fleet.candidate, fleet.load, fleet.trial.base
    peak, peak_share = _scaled(fleet, load.peak, replicas)
    mean, _ = (peak, peak_share) if load.amount == load.peak else _scaled(fleet, load.amount, replicas)
    spare = search.spare_replicas
    price = gpu_price(altered(base, candidate.settings))
    hour = None if price is None else price.usd_per_hour * candidate.gpus
    watts = peak.figures.get("facility_power_w")
    usd = None if hour is None else hour * (replicas + spare)
    per_mtok = _per_mtok(usd, mean.output_tok_s)
    found = Alternative(
        gpu=candidate.gpu,
        label=candidate.label,
        settings=candidate.settings,
        replicas=replicas,
        spare=spare,
        gpus=(replicas + spare) * candidate.gpus,
        nominal_gpus=nominal * candidate.gpus,
        gpus_interval=(low * candidate.gpus, None if high is None else high * candidate.gpus),
        price="no price known" if price is None else price.statement,
        gpu_hour_usd=None if price is None else price.usd_per_hour,
        usd_per_hour=usd,
        usd_per_month=None if usd is None else usd * _HOURS_A_MONTH,
        usd_per_mtok=per_mtok,
        usd_per_mtok_at_peak=_per_mtok(usd, peak.output_tok_s),
        usd_per_mtok_total=_per_mtok(usd, mean.total_tok_s),
        usd_per_mtok_interval=None if per_mtok is None else _interval(per_mtok, replicas, low, high, spare),
        kw=None if watts is None else watts * peak_share * (replicas + spare) / replicas / 1e3,
        objective=decision.objective,
        sure=decision.sure,
        slo=fleet.trial.slo,
        peak=peak,
        mean=mean,
        over=(),
    )
    return replace(found, over=tuple(_exceeded(found, search)))


def _scaled(fleet: Fleet, amount: float, replicas: int) -> tuple[Measured, float]:
    """Return a run with its rates those of the whole fleet, and how many times it was multiplied for that."""
    run, share = fleet.run(amount, replicas)
    rates = {name: getattr(run, name) * share for name in ("requests_per_s", "output_tok_s", "total_tok_s")}
    return replace(run, num_gpus=replicas * fleet.candidate.gpus, **rates), share


def _per_mtok(usd_per_hour: float | None, tok_s: float) -> float | None:
    return None if usd_per_hour is None or not tok_s else usd_per_hour / 3600 / tok_s * _MTOK


def _interval(usd: float, count: int, low: int, high: int | None, spare: int) -> tuple[float, float | None]:
    all_of_them = count + spare
    return usd * (low + spare) / all_of_them, None if high is None else usd * (high + spare) / all_of_them


def _exceeded(found: Alternative, search: Cheapest) -> list[str]:
    limits = (
        ("month", found.usd_per_month, search.max_usd_per_month),
        ("million output tokens at the mean load", found.usd_per_mtok, search.max_usd_per_mtok),
    )
    return [
        f"${value:,.2f} a {unit}, above the limit of ${limit:,.2f}"
        for unit, value, limit in limits
        if value is not None and limit is not None and value > limit
    ]


def ranked(alternatives: Sequence[Alternative], search: Cheapest) -> tuple[Alternative, ...]:
    """Return *alternatives* with the one to take first and their reasons: within the limits first, then by price."""
    order = sorted(alternatives, key=_rank)
    return tuple(
        replace(each, why=_why(each, order[0]), turning_usd_per_hour=_turning_price(each, order, search))
        for each in order
    )


def _turning_price(each: Alternative, order: Sequence[Alternative], search: Cheapest) -> float | None:
    """Return the price at which *each* keeps all limits and costs as much as the cheapest other one that does."""
    if each.gpu_hour_usd is None or each.usd_per_month is None or each.usd_per_mtok is None:
        return None
    rivals = [other.usd_per_month for other in order if other is not each and not other.over and other.usd_per_month]
    limits = [(each.usd_per_month, usd) for usd in (search.max_usd_per_month, *rivals[:1]) if usd is not None]
    if search.max_usd_per_mtok is not None:
        limits.append((each.usd_per_mtok, search.max_usd_per_mtok))
    return min((each.gpu_hour_usd * limit / value for value, limit in limits), default=None)


def _rank(each: Alternative) -> tuple[bool, bool, float, int]:
    usd = each.usd_per_month
    return bool(each.over), usd is None, usd or 0.0, each.gpus


def _why(each: Alternative, first: Alternative) -> str:
    if each is first:
        return "the cheapest within all limits" if not each.over else f"the cheapest, but {each.over[0]}"
    if each.over:
        return each.over[0]
    if each.usd_per_month is None or not first.usd_per_month:
        return "no price is known"
    dearer = each.usd_per_month / first.usd_per_month - 1
    cheap = each.gpu_hour_usd is not None and first.gpu_hour_usd is not None and each.gpu_hour_usd < first.gpu_hour_usd
    more = f"{each.gpus} accelerators instead of {first.gpus}"
    price = f"at ${each.gpu_hour_usd:.2f} instead of ${first.gpu_hour_usd:.2f} an hour"
    return f"{dearer:+.0%} a month: {more} {'although ' if cheap and each.gpus > first.gpus else ''}{price}"


