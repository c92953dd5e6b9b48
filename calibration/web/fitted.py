"""What came of a fit, as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from calibration.fitting.outcome import Outcome
from calibration.report import taken
from calibration.web.charts import correlation_heat, fit_scatter, residual_chart, said_of
from sim.ui.charts.style import CONFIG
from sim.ui.example import CHAT_70B
from sim.ui.session import state_of, uploads
from sim.ui.text import plainly

__all__ = ["draw_fit"]


def draw_fit(outcome: Outcome) -> None:
    """Draw what became of the runs, constants, errors and correlations, and offer the profile."""
    fitted = outcome.fitted
    for line in filter(None, taken(outcome)):
        st.markdown(plainly(line))
    if outcome.is_worse:
        st.warning("Runs that were kept back are met better as shipped: this fit is not to be used.")
    left, right = st.columns(2, gap="medium")
    with left:
        found = [fitted.constants.constants[prior.name] for prior in outcome.priors]
        st.dataframe(
            {
                "constant": [prior.name for prior in outcome.priors],
                "value": [f"{constant.value:.4g}" for constant in found],
                "± standard error": [f"{constant.stderr or 0:.2g}" for constant in found],
                "told": ["no" if prior.name in fitted.unknown else "yes" for prior in outcome.priors],
                "before": [f"{prior.mean:.4g} ± {prior.deviation:.2g}" for prior in outcome.priors],
            },
            hide_index=True,
            alt="Fitted constants with standard errors, if runs tell them, and what was thought before",
        )
        groups = {
            "as shipped": outcome.before,
            "fitted": outcome.on_used,
            "kept back": outcome.on_held_out,
            "these, as shipped": outcome.before_on_held_out,
        }
        st.dataframe(
            {
                "mean error [%]": list(groups),
                **{
                    said_of(metric): [_mape(group.get(metric)) for group in groups.values()]
                    for metric in outcome.metrics
                },
            },
            hide_index=True,
            alt="Mean absolute error in per cent: as shipped, on the runs that were fitted, on those kept back",
        )
    with right:
        st.plotly_chart(fit_scatter(outcome), config=CONFIG, key="fit", alt="Predicted over measured after the fit")
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Residuals**")
        st.plotly_chart(residual_chart(outcome), config=CONFIG, key="residuals", alt="Error of every run in per cent")
    with right:
        st.markdown("**Correlations**")
        chart = correlation_heat(outcome)
        st.plotly_chart(chart, config=CONFIG, key="correlations", alt="Correlations of the fitted constants")
    _take(outcome)


def _mape(found: Mapping[str, float] | None) -> str:
    return "" if found is None else f"{found['mape']:.1f}"


def _take(outcome: Outcome) -> None:
    name = f"my-{outcome.engine}"
    text = outcome.as_yaml(name)
    with st.container(horizontal=True):
        st.download_button(
            "Constants (YAML)", text, f"{name}.yaml", "application/yaml", icon=":material/download:", on_click="ignore"
        )
        if st.button("Use them in Explore", icon=":material/play_arrow:"):
            path = uploads().add(f"{name}.yaml", text.encode(), "constants")
            state_of("explore", CHAT_70B).set("engine.calibration", path.name)
            st.success(f"Explore now runs with `engine.calibration: {path.name}`.")
    st.caption("Put the file into `profiles/calibrated/engines/`, or beside the experiment that names it.")
