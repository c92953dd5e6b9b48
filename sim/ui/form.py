"""Draws what a form has to ask, and writes the answers into the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from sim.errors import ProfileError, SimError, UserError
from sim.experiment import Experiment, defaults_used
from sim.profiles.folders import Kind, names
from sim.profiles.library import load_engine
from sim.simulate import ready_pools
from sim.ui.control import Control, Node, Section, Variants, proposed
from sim.ui.state import State
from sim.ui.text import plainly
from sim.ui.values import default_word, help_of, markdown, plain_number, si_number, step_of, word

__all__ = ["Drawing", "used_values"]

_PROFILES: dict[str, Kind] = {
    "model": "models",
    "deployment.gpu": "hardware",
    "engine.kind": "engines",
    "engine.calibration": "calibrated/engines",
    "engine.all_to_all.library": "calibrated/all_to_all",
    "workload.lengths.name": "workloads",
    "workload.arrivals.profile": "workloads",
    "search.gpus": "hardware",
}
_OF_ONE_ENGINE = ("engine.version", "engine.scheduler", "engine.calibration")
"""Fields that mean nothing to another engine, and are left open when it is changed."""
_DEGREES = [2**power for power in range(8)]


@dataclass
class Drawing:
    """Draws fields of one state.

    Attributes
    ----------
    used
        What holds, by dotted path, where the experiment writes nothing.
    error
        What is wrong with the experiment; it is shown beside the field that it is about.
    drawn
        Paths that were drawn already, and are left out from then on.
    """

    state: State
    used: Mapping[str, Any]
    error: UserError | None = None
    drawn: set[str] = field(default_factory=set)

    def draw(self, nodes: Iterable[Node]) -> None:
        """Draw *nodes* and what is below them."""
        for node in nodes:
            if node.path in self.drawn:
                continue
            self.drawn.add(node.path)
            if isinstance(node, Control):
                self._control(node)
            elif isinstance(node, Section):
                self._section(node)
            else:
                self._variants(node)

    def choose(self, node: Node) -> list[Node]:
        """Draw the choice of a policy's kind alone, and return the fields of that kind."""
        if not isinstance(node, Variants):
            return []
        self.drawn.add(node.path)
        kind = self._kind(node)
        return list(node.nodes(kind)) if kind in node.models else []

    def drawer(self, title: str, nodes: Iterable[Node]) -> None:
        """Draw *nodes* in an expander, when it is open: widgets that nobody sees would slow down every change."""
        inside = list(nodes)
        box = st.expander(title, on_change="rerun", key=self._key(title, "drawer"))
        if box.open:
            with box:
                self.draw(inside)
            return
        for node in inside:
            if node.path not in self.drawn:
                self.complain(node.path)
                self.drawn.add(node.path)

    def complain(self, path: str) -> None:
        """Show the error here if it is about *path*, or about something below it that was not drawn."""
        error = self.error
        if error is None or error.path is None:
            return
        if error.path == path or (error.path.startswith(f"{path}.") and error.path not in self.drawn):
            st.error(plainly(error.message))
            self.error = None

    def _section(self, section: Section) -> None:
        there = self.state.value(section.path) is not None
        if section.optional:
            key = self._key(section.path, "use")
            wanted = proposed(section.model, {}) if not there else None
            st.checkbox(
                section.label, there, key, section.help, on_change=self._writer(section.path, key, lambda _: wanted)
            )
            if not there:
                return
        elif section.path.count(".") > 1:
            st.caption(section.label)
        self.draw(section.nodes())
        self.complain(section.path)

    def _variants(self, node: Variants) -> None:
        kind = self._kind(node)
        if kind in node.models:
            self.draw(node.nodes(kind))
        self.complain(node.path)

    def _kind(self, node: Variants) -> str:
        """Draw the choice of a kind, and return what is written, else what holds; empty if nothing does."""
        written = self.state.value(node.path) or {}
        kind = written.get("kind")
        key = self._key(node.path, "kind")

        def chosen(choice: str | None) -> Any:
            return None if choice is None else proposed(node.models[choice], written)

        open_ = node.optional or node.default is not None
        options = [*([None] if open_ else []), *node.models]
        used = node.default or self.used.get(f"{node.path}.kind") or self.used.get(node.path)
        st.selectbox(
            node.label,
            options,
            options.index(kind) if kind in options else 0,
            format_func=lambda option: default_word(used) if option is None else option,
            key=key,
            help=help_of(node.help, node.models, kind or used),
            on_change=self._writer(node.path, key, chosen),
        )
        self.complain(f"{node.path}.kind")
        return str(kind or node.default or "")

    def _control(self, control: Control) -> None:
        choices = self._choices(control)
        if control.form in ("words", "wholes"):
            self._several(control, choices)
        elif choices is not None:
            self._choice(control, choices)
        elif control.form in ("whole", "number"):
            self._number(control)
        else:
            self._text(control)
        self.complain(control.path)

    def _choices(self, control: Control) -> list[Any] | None:
        """Return what can be chosen: of the field itself, of the profiles or of the uploads; None: anything."""
        if control.form == "choice" or control.choices:
            return list(control.choices)
        if control.form == "wholes":
            return _DEGREES
        if control.form == "flag":
            return [True, False]
        own = self.state.uploads.names_for(control.path)
        if control.path in _PROFILES:
            return [*own, *names(_PROFILES[control.path])]
        if control.path == "engine.version":
            return self._versions()
        return own if control.form == "file" else None

    def _versions(self) -> list[str] | None:
        try:
            engine = load_engine(str(self.state.value("engine.kind") or "vllm"))
        except ProfileError:
            return None
        return list(dict.fromkeys(("latest", *(version.since for version in reversed(engine.versions)))))

    def _choice(self, control: Control, choices: list[Any]) -> None:
        value = self.state.value(control.path)
        if value is not None and value not in choices:
            choices = [value, *choices]
        options = choices if self._is_required(control) and value is not None else [None, *choices]
        key = self._key(control.path, control.form)
        used = self._used(control)
        st.selectbox(
            control.label,
            options,
            options.index(value),
            format_func=lambda option: default_word(used) if option is None else word(option),
            key=key,
            help=markdown(control.help),
            on_change=self._writer(control.path, key, lambda choice: choice),
        )

    def _several(self, control: Control, choices: list[Any] | None) -> None:
        written = self.state.value(control.path)
        value = written if isinstance(written, list) else []
        key = self._key(control.path, control.form)
        used = self._used(control)
        st.multiselect(
            control.label,
            list(dict.fromkeys((*(choices or []), *value))),
            value,
            key=key,
            help=markdown(control.help),
            placeholder=", ".join(map(str, used)) if used else "default",
            on_change=self._writer(control.path, key, lambda chosen: list(chosen) or None),
        )

    def _number(self, control: Control) -> None:
        whole, value = control.form == "whole", si_number(self.state.value(control.path))
        convert: type = int if whole else float
        key = self._key(control.path, control.form)
        used = self._used(control)
        inside = value is None or _is_within(control, value)  # else the message below says so
        st.number_input(
            control.label,
            None if control.low is None or not inside else convert(control.low),
            None if control.high is None or not inside else convert(control.high),
            None if value is None else convert(value),
            step=1 if whole else step_of(value if value is not None else used),
            format="%d" if whole else "%g",
            key=key,
            help=markdown(control.help),
            placeholder=None if used is None else f"{used:,}" if isinstance(used, int | float) else str(used),
            on_change=self._writer(control.path, key, plain_number),
        )

    def _text(self, control: Control) -> None:
        value, key = self.state.value(control.path), self._key(control.path, control.form)
        used = self._used(control)
        st.text_input(
            control.label,
            "" if value is None else str(value),
            max_chars=200,
            key=key,
            help=markdown(control.help),
            placeholder=None if used in (None, "") else str(used),
            on_change=self._writer(control.path, key, lambda text: text.strip() or None),
        )

    def _is_required(self, control: Control) -> bool:
        return not control.optional and control.default is None

    def _used(self, control: Control) -> Any:
        used = self.used.get(control.path)
        return control.default if used is None else used

    def _key(self, path: str, of: str) -> str:
        return f"{path}|{of}|{self.state.generation}|{self.state.name}"

    def _writer(self, path: str, key: str, value_of: Callable[[Any], Any]) -> Callable[[], None]:
        def write() -> None:
            self.state.set(path, value_of(st.session_state[key]))
            for other in _OF_ONE_ENGINE if path == "engine.kind" else ():
                if self.state.value(other) is not None:
                    self.state.set(other, None)

        return write


def used_values(experiment: Experiment | None) -> dict[str, Any]:
    """Return what holds where *experiment* writes nothing, by dotted path, as far as it can be told."""
    if experiment is None:
        return {}
    try:
        # The mixture decides no flag and takes seconds to load.
        pools = ready_pools(experiment.model_copy(update={"moe": None}))
    except SimError:
        return dict(defaults_used(experiment))
    flags = pools[0].setup.flags
    used = dict(defaults_used(experiment)) | dict(flags.left_open(experiment.engine))
    return used | {"engine.scheduler": flags.scheduler.kind}


def _is_within(control: Control, value: float) -> bool:
    return (control.low is None or control.low <= value) and (control.high is None or value <= control.high)
