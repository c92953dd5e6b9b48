"""From what a reader without traffic data knows (users, messages, words) to a workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from sim.errors import ConfigError, UserError, did_you_mean
from sim.profiles.languages import Languages
from sim.profiles.library import load_languages
from sim.section import Section

__all__ = ["Answers", "workload_of"]

_HOURS_A_DAY = 24
_ANSWERS = 2  # messages a turn: what the user says, and what was answered
_WORDS = "words"


class Answers(Section):
    """A questionnaire of ten lines; what is left out has a default."""

    name: str = Field("questionnaire", description="Name of the experiment.")
    model: str = Field("meta-llama/Llama-3.3-70B-Instruct", description="What is to be served.")
    gpu: str = Field("H100-SXM-80GB", description="An accelerator to begin with.")
    gpus_per_replica: int = Field(4, ge=1, description="Accelerators that share one copy of it, to begin with.")
    users: int = Field(ge=1, description="People who have access.")
    active_share: float = Field(0.5, gt=0, le=1, description="Share of them that use it on a working day.")
    messages_per_day: float = Field(10, gt=0, description="Messages of an active user a day.")
    hours_per_day: float = Field(10, gt=0, le=_HOURS_A_DAY, description="Hours over which they spread.")
    peak_factor: float = Field(
        2.5, ge=1, description="Busiest minutes over the mean of those hours; RAGPulse's busiest hour has 1.6."
    )
    language: str = Field("english", description="Of prompts and answers.")
    prompt_words: float = Field(gt=0, description="Of a typical message (characters in Chinese and Japanese).")
    answer_words: float = Field(gt=0, description="Of a typical answer.")
    system_prompt_words: float = Field(0, ge=0, description="At the beginning of every prompt.")
    document_words: float = Field(0, ge=0, description="Of retrieved documents with each message.")
    earlier_turns: float = Field(1, ge=0, description="Turns of the conversation that are sent again, on average.")
    long_to_typical: float = Field(
        3.0, ge=1, description="The longest tenth over the typical; 2.7 and 3.3 in Azure's chat trace of 2023."
    )
    data_residency: bool = Field(False, description="Data may not leave the company or the country.")
    compliance: bool = Field(False, description="Regulated data: an API would cost a premium.")
    tokenizer: Path | None = Field(None, description="Your model's tokenizer.json, with `sample`.")
    sample: Path | None = Field(None, description="A text file of such prompts, to count words and tokens in.")


def workload_of(answers: Answers, beside: Path) -> tuple[dict[str, Any], list[str]]:
    """Return an experiment's sections for *answers*, and how each number came about.

    Parameters
    ----------
    beside
        Folder to which the paths in *answers* are relative.

    Raises
    ------
    ConfigError
        For a language that is not known.
    UserError
        If the tokenizer cannot be used.
    """
    languages = load_languages(_WORDS, beside)
    factor, origin = _factor(answers, languages, beside)
    mean_rate = answers.users * answers.active_share * answers.messages_per_day / (answers.hours_per_day * 3600)
    peak_rate = mean_rate * answers.peak_factor
    tokens = _tokens(answers, factor, languages)
    load = answers.hours_per_day / _HOURS_A_DAY / answers.peak_factor
    experiment = {
        "name": answers.name,
        "model": answers.model,
        "deployment": {"gpu": answers.gpu, "parallelism": {"tp": answers.gpus_per_replica}},
        "workload": {
            "arrivals": {"kind": "poisson", "rate": round(peak_rate, 6)},
            "lengths": {
                "kind": "lognormal",
                "input_tokens": {"median": tokens["prompt"], "p90": round(tokens["prompt"] * answers.long_to_typical)},
                "output_tokens": {"median": tokens["answer"], "p90": round(tokens["answer"] * answers.long_to_typical)},
            },
            **({"shared_prefix": {"tokens": tokens["system"]}} if tokens["system"] else {}),
        },
        "costs": {
            "load_factor": round(load, 4),
            **({"self_hosting_given": True} if answers.data_residency else {}),
            **({"compliance_premium": 0.3} if answers.compliance else {}),
        },
    }
    return experiment, list(_derivation(answers, mean_rate, factor, origin, tokens))


def _derivation(
    answers: Answers, mean_rate: float, factor: float, origin: str, tokens: Mapping[str, int]
) -> Iterator[str]:
    people = f"{answers.users} users x {answers.active_share:g} active x {answers.messages_per_day:g} messages"
    yield f"rate: {people} / {answers.hours_per_day:g} h = {mean_rate:.3g}/s, x {answers.peak_factor:g} at the peak"
    yield f"tokens: {factor:.3g} a word ({origin})"
    parts = ", ".join(f"{name} {tokens[name]}" for name in ("system", "documents", "earlier", "message", "template"))
    yield f"prompt: {parts} tokens, with {answers.earlier_turns:g} earlier turns"
    yield f"load_factor: {answers.hours_per_day:g} of 24 hours / {answers.peak_factor:g}"
    if answers.data_residency:
        yield "self-hosting is given, so it is only sized"


def _tokens(answers: Answers, factor: float, languages: Languages) -> dict[str, int]:
    """Return the typical tokens of the prompt's parts and of the answer."""
    message, answer = answers.prompt_words * factor, answers.answer_words * factor
    turns = answers.earlier_turns
    messages = 1 + _ANSWERS * turns + (1 if answers.system_prompt_words else 0)
    parts = {
        "system": answers.system_prompt_words * factor,
        "documents": answers.document_words * factor,
        "earlier": turns * (message + answer),
        "message": message,
        "template": languages.tokens_per_request + messages * languages.tokens_per_message,
    }
    whole = {name: round(value) for name, value in parts.items()}
    return {**whole, "prompt": max(1, sum(whole.values())), "answer": max(1, round(answer))}


def _factor(answers: Answers, languages: Languages, beside: Path) -> tuple[float, str]:
    if answers.tokenizer is not None:
        return _counted(answers.tokenizer, answers.sample, beside), f"counted with {answers.tokenizer}"
    known: Mapping[str, float] = languages.tokens_per_word
    if (language := answers.language.casefold()) not in known:
        choices = did_you_mean(answers.language, list(known)) or f"; one of {', '.join(known)}"
        raise ConfigError(f"no language {answers.language!r} is known{choices}", path="language")
    unit = ", a character counted as a word" if language in languages.by_character else ""
    return known[language], f"{language}{unit}; 10 to 20 % either way"


def _counted(tokenizer: Path, sample: Path | None, beside: Path) -> float:
    if sample is None:
        raise ConfigError("a tokenizer needs a sample: a text file of such prompts", path="sample")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UserError("counting tokens needs the package `tokenizers`: pip install tokenizers") from None
    try:
        text = (beside / sample).read_text(encoding="utf-8")
        encoded = Tokenizer.from_file(str(beside / tokenizer)).encode(text, add_special_tokens=False)
    except Exception as problem:  # whatever the library raises is the file's fault
        raise UserError(f"cannot be used: {problem}", file=str(beside / tokenizer)) from None
    words = len(text.split())
    if not words:
        raise UserError("has no words", file=str(beside / sample))
    return len(encoded.ids) / words
