"""Draws a job: its result if it is there soon, else how far it is, with a way to stop it."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import TypeVar

import streamlit as st

from sim.errors import InfeasibleError, SimError, UserError
from sim.ui.jobs import Job
from sim.ui.results import Kept
from sim.ui.text import plainly, told
from sim.units import format_seconds

__all__ = ["instead", "refused", "result_of", "when_done"]

T = TypeVar("T")

_AT_ONCE_S = 1.5
_EVERY_S = 0.5
_STOPPED = "stopped job"


def refused(error: UserError | None) -> None:
    """Say in the place of figures what is wrong; None: a field has said it."""
    if error is None:
        st.info("One of the fields cannot be used as it is; the message is below it.")
    else:
        st.error(plainly(f"{error.path}: {error.message}") if error.path else told(error))


def result_of(job: Job[T], kept: Kept, what: str) -> T | None:
    """Return the result of *job* if it is there in a moment; else draw why not, and return None.

    *what* names the work in progress, such as "Simulating". The page runs anew when it is done.
    """
    if not job.wait(_AT_ONCE_S):
        _progress(job, what)
        return None
    try:
        return job.result()
    except CancelledError:
        _stopped(job, kept)
    except InfeasibleError as error:
        _infeasible(error)
    except SimError as error:
        st.error(told(error))
    return None


@st.fragment(run_every=_EVERY_S)
def _progress(job: Job[T], what: str) -> None:
    if job.finished:
        st.rerun()
    left = job.elapsed_s * (1 / job.share - 1) if job.share else None
    so_far = f"{what}: {job.done:,} runs so far" if job.done else f"{what} ..."
    text = f"{what}: {job.done:,} of {job.total:,}" if job.total else so_far
    st.progress(min(job.share, 1.0), text if left is None else f"{text}, about {format_seconds(left)} left")
    if st.button("Stop", icon=":material/stop:", help="Give this up; the page stays as it is."):
        st.session_state[_STOPPED] = job
        job.cancel()


def _stopped(job: Job[T], kept: Kept) -> None:
    """Offer to start again what this visitor has stopped; what somebody else has stopped begins anew."""
    mine = st.session_state.get(_STOPPED) is job
    if mine:
        st.warning("Stopped before it was done.", icon=":material/stop_circle:")
    if not mine or st.button("Start again"):
        kept.forget(job)
        st.rerun()


@st.fragment(run_every=_EVERY_S)
def when_done(job: Job[T], text: str) -> None:
    """Draw *text* in the place of a result that the page shows, run anew, when *job* is done."""
    if job.finished:
        st.rerun()
    st.markdown(text)


def instead(name: str, job: Job[T]) -> Job[T]:
    """Return *job*, and stop the one of that *name* that this session asked for before it."""
    key = f"job {name}"
    before: Job[T] | None = st.session_state.get(key)
    if before is not None and before is not job and not before.finished:
        before.cancel()
    st.session_state[key] = job
    return job


def _infeasible(error: InfeasibleError) -> None:
    """Say that it does not fit, and what would."""
    st.error(f"**Does not fit.** {told(InfeasibleError(error.needs, error.has))}", icon=":material/block:")
    if error.nearest:
        st.markdown("Nearest that fits:\n" + "\n".join(f"- {plainly(change)}" for change in error.nearest))
