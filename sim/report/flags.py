"""The flags of engines as a page: which are modelled, which change nothing, which are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sim.profiles.flags import FlagTable, ModelledFlag

__all__ = ["flags_page"]

_HEAD = """# Flags of the engines

`engine.flags` takes the command line of a server, as text or word by word, instead of the fields that it stands for.
Every flag of the releases below is modelled, without effect on any figure, or refused; one that is in no table is
refused as unknown. Words are read as each server reads them: `--flag=value`, underscores for hyphens, `--no-flag`, a
value attached to a flag of one letter for vLLM and TGI (`-O3`), keys of JSON
(`--compilation-config.max_cudagraph_capture_size 256`) and, for TGI and Ollama, variables before the command
(`OLLAMA_NUM_PARALLEL=4 ollama serve`). A flag and a field that say different things are refused; a value with which the
engine chooses (`--dtype auto`) says nothing, and the field counts. This page is what `python -m sim profiles flags`
prints of `profiles/flags`.
"""


def flags_page(tables: Iterable[FlagTable]) -> str:
    """Return the page of all *tables*, as Markdown."""
    return "\n".join([_HEAD, *(line for table in tables for line in _table(table))])


def _table(table: FlagTable) -> Iterator[str]:
    counts = [sum(len(names) for names in group.values()) for group in (table.irrelevant, table.refused)]
    yield f"## `{table.command}` {table.version}\n"
    parts = f"{len(table.modelled)} modelled, {counts[0]} without effect, {counts[1]} refused"
    yield f"{parts}. Source: {table.sources['all']}.\n"
    if table.defaults:
        said = ", ".join(f"`{name} {text}`" for name, texts in table.defaults.items() for text in texts)
        yield f"As if they were not there: {said}.\n"
    yield "| modelled | field |\n|---|---|"
    yield from (f"| {_names(flag.names)} | {_field(flag)} |" for flag in table.modelled)
    for title, group in (("without effect", table.irrelevant), ("refused", table.refused)):
        yield f"\n| {title} | why |\n|---|---|"
        yield from (f"| {_names(names)} | {why} |" for why, names in group.items())
    yield ""


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _field(flag: ModelledFlag) -> str:
    field = f"`{flag.field}`"
    if flag.write:
        taken = f"; taken as {', '.join(flag.values)}" if flag.values else ""
        return f"write {field}, {flag.write}{taken}"
    if flag.values is not None:
        beside = f"; `{flag.beside}` has to say the same" if flag.beside else ""
        beside += "".join(f"; only with `{other} {text}`" for other, text in flag.only_with.items())
        return f"{field}, of {', '.join(flag.values)}{beside}"
    if flag.on is not None:
        return f"{field}: {_shown(flag.on)}"
    others = (f"; {text}: {_said(fields)}" for text, fields in flag.instead.items())
    alone = f"; one number: `{flag.alone}`" if flag.alone else ""
    refused = f"; not {', '.join(flag.refused)}" if flag.refused else ""
    return f"{field}{', a list' if flag.many else ''}{alone}{''.join(others)}{refused}"


def _said(fields: Mapping[str, object]) -> str:
    return ", ".join(f"`{field}`: {_shown(value)}" for field, value in fields.items())


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
