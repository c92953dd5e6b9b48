"""A questionnaire by hand, and that what comes out of it runs."""

import sys
import types

import pytest

from sim.__main__ import main
from sim.errors import ConfigError, UserError
from sim.experiment import load_experiment
from sim.profiles.library import load_languages
from sim.workload.questionnaire import Answers, workload_of


def answers(**changes):
    return Answers(**({"users": 720, "prompt_words": 100, "answer_words": 200} | changes))


def test_rates_and_tokens_by_hand(tmp_path):
    asked = answers(active_share=0.5, messages_per_day=20, hours_per_day=10, peak_factor=2, earlier_turns=2)
    experiment, derivation = workload_of(asked, tmp_path)
    # 720 x 0.5 x 20 = 7,200 messages in 36,000 s
    assert experiment["workload"]["arrivals"] == {"kind": "poisson", "rate": 0.4}
    # message 130; two turns of 130 + 260; template 30 + 5 messages of 5
    lengths = experiment["workload"]["lengths"]
    assert lengths["input_tokens"] == {"median": 130 + 2 * 390 + 55, "p90": 3 * 965}
    assert lengths["output_tokens"] == {"median": 260, "p90": 780}
    assert experiment["costs"]["load_factor"] == pytest.approx(10 / 24 / 2, abs=1e-4)
    assert "x 2 at the peak" in derivation[0]


def test_five_english_words_are_six_tokens_or_a_few_more_and_korean_takes_more(tmp_path):
    factors = load_languages("words").tokens_per_word
    assert 6 <= 5 * factors["english"] <= 7
    assert 2 * factors["english"] < factors["korean"] < 9
    korean, _ = workload_of(answers(language="Korean"), tmp_path)
    assert korean["workload"]["lengths"]["output_tokens"]["median"] == 600


def test_a_system_prompt_is_a_shared_prefix_and_flags_reach_the_costs(tmp_path):
    asked = answers(system_prompt_words=400, data_residency=True, compliance=True)
    experiment, derivation = workload_of(asked, tmp_path)
    assert experiment["workload"]["shared_prefix"] == {"tokens": 520}
    assert experiment["costs"]["self_hosting_given"]
    assert 0.2 <= experiment["costs"]["compliance_premium"] <= 0.4
    assert "only sized" in derivation[-1]


def test_an_unknown_language_gets_a_suggestion(tmp_path):
    with pytest.raises(ConfigError, match=r"'germn'.*did you mean.*german"):
        workload_of(answers(language="germn"), tmp_path)


def test_ones_own_tokenizer_is_counted_with(tmp_path, monkeypatch):
    class Counter:
        @staticmethod
        def from_file(_path):
            return types.SimpleNamespace(encode=lambda text, **_: types.SimpleNamespace(ids=list(text)))

    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=Counter))
    (tmp_path / "sample.txt").write_text("four words of text")  # 18 letters
    asked = answers(tokenizer="tokenizer.json", sample="sample.txt")
    experiment, derivation = workload_of(asked, tmp_path)
    assert experiment["workload"]["lengths"]["output_tokens"]["median"] == 900
    assert "counted with tokenizer.json" in derivation[1]
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match="pip install tokenizers"):
        workload_of(asked, tmp_path)


def test_the_questionnaire_as_printed_becomes_an_experiment(tmp_path, capsys):
    assert main(["workload", "questions"]) == 0
    filled = tmp_path / "answers.yaml"
    filled.write_text(capsys.readouterr().out)
    assert main(["workload", "answer", str(filled)]) == 0
    made = tmp_path / "made.yaml"
    made.write_text(capsys.readouterr().out)
    assert load_experiment(made).workload.arrivals.rate > 0
    assert main(["run", str(made), "--quiet", "--set", "workload.num_requests=20"]) == 0


def test_presets_are_listed_and_shown(capsys):
    assert main(["workload", "list"]) == 0
    assert "chat" in capsys.readouterr().out
    assert main(["workload", "show", "chat"]) == 0
    assert "Azure" in capsys.readouterr().out
