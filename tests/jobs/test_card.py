"""The model card: front matter that parses, figures in points, nothing from outside that could act."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bertkit.jobs.card import card


def front(text: str) -> Any:
    assert text.startswith("---\n")
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize(
    ("architecture", "pipeline"),
    [
        ("BertForSequenceClassification", "text-classification"),
        ("BertForPreTraining", "fill-mask"),
        ("BertForQuestionAnswering", "question-answering"),
    ],
)
def test_the_hub_reads_the_card(tmp_path: Path, architecture: str, pipeline: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}), encoding="utf-8")
    text = card(tmp_path, {"task": "x"}, {"model": "google-bert/bert-base-uncased"}, {"accuracy": 0.5})
    facts = front(text)
    assert (facts["library_name"], facts["pipeline_tag"]) == ("transformers", pipeline)
    assert facts["base_model"] == "google-bert/bert-base-uncased"
    assert "| accuracy | 50.00 |" in text
    assert f'pipeline("{pipeline}"' in text


def test_a_local_model_is_no_base_of_the_hub(tmp_path: Path) -> None:
    for local in (str(tmp_path), "../models/mine", "bert"):
        assert "base_model" not in front(card(tmp_path, {}, {"model": local}, {}))


def test_nothing_from_outside_acts(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>|[x](javascript:1)\x1b[2J"
    text = card(tmp_path / evil.replace("/", "_"), {"task": evil, "command": f"bertkit ```\n{evil}"}, {}, {evil: 1.0})
    before, _, after = text.partition("```sh\n")
    fenced, _, after = after.partition("\n```\n")
    assert "```" not in fenced
    assert "<script" not in before + after
    assert "](javascript" not in before + after
    assert "\x1b" not in text
