"""Cost: rent, buy, or let others serve."""

from __future__ import annotations

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.report.json import to_json
from sim.study.money import Money
from sim.ui import results
from sim.ui.charts.cost import bills_chart, break_even_chart, utilisation_chart
from sim.ui.charts.style import CONFIG
from sim.ui.control import at, form_of
from sim.ui.example import CHAT_70B
from sim.ui.form import Drawing
from sim.ui.frame import draw_framed
from sim.ui.text import dollars
from sim.ui.waiting import instead, refused, result_of

__all__ = ["draw"]

_DEPLOYMENT = ("model", "deployment.gpu", "deployment.replicas", "deployment.parallelism.tp", "workload.arrivals")
_COMMON = (
    "costs.load_factor",
    "costs.amortisation_years",
    "costs.staff_share",
    "costs.spare_replicas",
    "costs.compliance_premium",
)


def draw() -> None:
    """Draw the page."""
    draw_framed("explore", CHAT_70B, _form, _answer, "cost")


def _form(drawing: Drawing) -> None:
    nodes = list(form_of(Experiment))
    st.subheader("Prices", anchor=False)
    drawing.draw(at(nodes, ["prices"]))
    st.subheader("Beside the accelerators", anchor=False)
    drawing.draw(at(nodes, _COMMON))
    drawing.drawer("All other costs", at(nodes, ["costs"]))
    st.subheader("Deployment", anchor=False)
    drawing.draw(at(nodes, _DEPLOYMENT))
    st.caption("All else of it is on Explore.")
    st.button("Back to the worked example", on_click=drawing.state.reset, icon=":material/restart_alt:")


def _answer(experiment: Experiment) -> None:
    try:
        job = instead("money", results.ask_money(experiment))
    except UserError as error:
        refused(error)
        return
    money = result_of(job, results.monies, "Simulating the load and saturation")
    if money is not None:
        _show(money)


def _show(money: Money) -> None:
    advice, _, why = money.answer.partition(": ")
    st.header(f"{advice[:1].upper()}{advice[1:]}", anchor=False)
    st.markdown(
        (f"**{dollars(why)}.** " if why else "")
        + f"{money.fleet.gpus} accelerators all month, under {money.load:.0%} of the experiment's load on average"
        f" ({money.load_from})."
    )
    _cards(money)
    st.subheader("A month's bill", anchor=False)
    st.plotly_chart(bills_chart(money.bills), config=CONFIG, key="bills", alt="A month's bill by scheme and item")
    for bill in money.bills:
        st.caption(dollars(f"**{bill.scheme}**, ${bill.total_usd:,.0f}: {bill.terms}"))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        st.subheader("Against an API", anchor=False)
        if money.apis:
            chart = break_even_chart(money)
            st.plotly_chart(chart, config=CONFIG, key="apis", alt="Cost of a month by its tokens, own and APIs")
    with right:
        st.subheader("By how busy it is", anchor=False)
        chart = utilisation_chart(money)
        st.plotly_chart(chart, config=CONFIG, key="utilisation", alt="Cost of a million output tokens by utilisation")
    if money.apis:
        _apis(money)
    for note in money.notes:
        st.caption(dollars(f"{note[:1].upper()}{note[1:]}."))
    st.download_button(
        "Figures (JSON)",
        to_json(money.as_dict()) + "\n",
        "cost.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
    )


def _cards(money: Money) -> None:
    best, month = money.best, money.month
    unit = best.unit_prices(month, money.rates.prefill_share)
    cards = {
        f"{dollars('$')} a month, {best.scheme}": f"${best.total_usd:,.0f}",
        f"{dollars('$')}/Mtok output": f"${unit.all_on_output:,.2f}",
        f"{dollars('$')}/Mtok of both": f"${unit.blended:,.2f}",
        "Used of saturation": "unknown" if money.utilization is None else f"{money.utilization:.0%}",
    }
    if month.energy_kwh is not None and month.carbon_kg is not None:
        cards |= {"kWh a month": f"{month.energy_kwh:,.0f}", "kg CO2 a month": f"{month.carbon_kg:,.0f}"}
    with st.container(horizontal=True, key="cards"):
        for label, value in cards.items():
            st.metric(label, value, border=True, width=148)


def _apis(money: Money) -> None:
    st.dataframe(
        {
            "API": [api.name for api in money.apis],
            "$ a month": [api.usd for api in money.apis],
            "break-even [M tokens a month]": [api.break_even_mtok for api in money.apis],
            "within capacity": ["yes" if api.break_even_mtok <= money.capacity_mtok else "no" for api in money.apis],
            f"$ in {money.experiment.costs.amortisation_years:g} years": [api.horizon_usd for api in money.apis],
            "own in that time": [api.horizon_own_usd for api in money.apis],
        },
        hide_index=True,
        column_config={
            "$ a month": st.column_config.NumberColumn(format="%,.0f"),
            "break-even [M tokens a month]": st.column_config.NumberColumn(format="%,.0f"),
            f"$ in {money.experiment.costs.amortisation_years:g} years": st.column_config.NumberColumn(format="%,.0f"),
            "own in that time": st.column_config.NumberColumn(format="%,.0f"),
        },
        alt="What APIs charge for the same month, and from how many tokens one's own is cheaper",
    )
