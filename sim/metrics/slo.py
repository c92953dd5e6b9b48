"""Service level objectives, for whoever judges by them; they are written in experiments and stand in `sim.slo`."""

from sim.slo import SHARES, SLO, Clause, Judgement, ShareJudgement

__all__ = ["SHARES", "SLO", "Clause", "Judgement", "ShareJudgement"]
