"""The experiment as a file: shown, edited, downloaded and shared."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import streamlit as st

from sim.errors import SimError
from sim.report.json import to_json
from sim.report.run import write
from sim.simulate import Result
from sim.ui.state import FILE_NAME, State
from sim.ui.text import told

__all__ = ["draw_exchange"]


def draw_exchange(state: State, result: Result | None = None, command: str | None = None) -> None:
    """Draw the YAML and a *result* to download, and a place for somebody's own; *command* gives the same figures."""
    st.subheader("This experiment as a file", anchor=False)
    if command is None:
        use = "`python -m sim run experiment.yaml` runs it."
    else:
        use = f"`python -m sim {command} experiment.yaml` gives the same figures."
    st.caption(f"{use} The address of this page restores all of it.")
    with st.container(horizontal=True):
        st.download_button(
            "YAML", state.text, FILE_NAME, "application/yaml", icon=":material/download:", on_click="ignore"
        )
        if result is not None:
            _results(result)
    if names := [
        name for kind in ("model", "trace", "loads", "map", "constants") for name in state.uploads.names(kind)
    ]:
        st.caption(f"Put your uploads beside it if it names them: {', '.join(names)}.")
    with st.expander("Show or edit the YAML", icon=":material/code:"):
        _editor(state)


def _results(result: Result) -> None:
    st.download_button(
        "JSON",
        to_json(result.summary.as_dict()) + "\n",
        "result.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
        help="All figures, with the keys of `vllm bench serve`.",
    )
    st.download_button(
        "Rows (Parquet)",
        lambda: _archive(result),
        "run.zip",
        "application/zip",
        icon=":material/download:",
        on_click="ignore",
        help="Requests, iterations and timeline as Parquet, a Perfetto trace and a manifest.",
    )


def _archive(result: Result) -> bytes:
    """Return what `sim run --out` writes, as a ZIP file."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="servecast-") as folder, zipfile.ZipFile(content, "w") as archive:
        for path in write(result, Path(folder)):
            archive.write(path, path.name, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _editor(state: State) -> None:
    key = f"yaml of {state.generation}"
    text = st.text_area("Experiment (YAML)", state.text, height=380, key=f"{key} {hash(state.text)}")
    file = st.file_uploader("or a file", ["yaml", "yml"], max_upload_size=1, key=f"file {key}")
    if not st.button("Use this YAML", type="primary", icon=":material/play_arrow:"):
        return
    try:
        state.read_text(file.getvalue().decode("utf-8-sig") if file is not None else text)
    except UnicodeDecodeError:
        st.error("The file is not UTF-8 text.")
    except SimError as problem:
        st.error(told(problem))
    else:
        st.rerun()
