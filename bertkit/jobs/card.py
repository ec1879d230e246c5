"""The model card: README.md of a run folder, from what the run knows. Nothing of the environment goes in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bertkit import __version__
from bertkit.batches.phases import Phase, phases_text
from bertkit.fields import Settings
from bertkit.jobs.console import clean, figure_rows
from bertkit.jobs.run_folder import RunFolder
from bertkit.settings.compare import flat

_PIPELINES = {
    "BertForPreTraining": "fill-mask",
    "BertForMaskedLM": "fill-mask",
    "BertForSequenceClassification": "text-classification",
    "BertForTokenClassification": "token-classification",
    "BertForQuestionAnswering": "question-answering",
}
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SETTINGS = (
    *("optimizer.learning_rate", "schedule.warmup", "batch.size", "budget.epochs", "budget.steps", "budget.max_minutes"),
    *("examples.objective", "examples.max_length", "phases", "kind.max_length"),
    *("masking.kind", "masking.probability", "corpus.words"),
    *("run.seed", "device.precision"),
)


def write_card(folder: RunFolder, settings: Settings, figures: Mapping[str, Any]) -> Path:
    """Writes README.md beside the model.

    Args:
        folder: The run's; its config.json says which head it has.
        settings: The resolved settings.
        figures: The final figures, in metrics.json's scale.
    """
    return folder.write("README.md", card(folder.path, folder.state, flat(settings), figures))


def card(path: Path, state: Mapping[str, Any], settings: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """The card's text; texts from outside are escaped for Markdown and HTML."""
    pipeline = _PIPELINES.get(_architecture(path), "")
    task = state.get("task") or settings.get("task")
    what = f"A BERT fine-tuned for the task {_safe(task)}" if task else "A BERT pretrained on text"
    chosen = [(key, _setting(settings[key])) for key in _SETTINGS if settings.get(key) not in (None, [])]
    parts = [
        _head(pipeline, settings),
        f"# {_safe(path.resolve().name)}",
        f"{what} by bertkit {__version__}.",
        _table("Figures", ("figure", "value"), figure_rows(figures)),
        "Shares are in points (0–100), of the data held out for validation, not of an independent test." if figures else "",
        _table("How it was made", ("setting", "value"), chosen),
        f"```sh\n{_fenced(state.get('command') or '')}\n```",
        "`settings.yaml` beside this file holds every setting: `--recipe settings.yaml` makes the run again.",
        _use(pipeline),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _setting(value: Any) -> Any:
    """A setting in one cell: phases as ``--phases`` takes them."""
    return phases_text([Phase(**each) for each in value]) if isinstance(value, list) else value


def _head(pipeline: str, settings: Mapping[str, Any]) -> str:
    facts: dict[str, Any] = {"library_name": "transformers", "tags": ["bert", "bertkit"]}
    if pipeline:
        facts["pipeline_tag"] = pipeline
    base = settings.get("model") or settings.get("model.init_from")
    if isinstance(base, str) and _HUB_NAME.fullmatch(base) and not Path(base).exists():
        facts["base_model"] = base
    return f"---\n{yaml.safe_dump(facts, sort_keys=False).rstrip()}\n---"


def _architecture(path: Path) -> str:
    try:
        named = json.loads((path / "config.json").read_text(encoding="utf-8")).get("architectures") or [""]
    except (OSError, ValueError, AttributeError):
        return ""
    return str(named[0])


def _table(title: str, header: tuple[str, str], rows: Sequence[tuple[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [f"| {_safe(name)} | {_safe(value)} |" for name, value in rows]
    return "\n".join([f"## {title}\n", f"| {header[0]} | {header[1]} |", "| --- | --- |", *lines])


def _use(pipeline: str) -> str:
    if not pipeline:
        return ""
    return f'## Use\n\n```python\nfrom transformers import pipeline\n\npipe = pipeline("{pipeline}", "path/of/this/folder")\n```'


def _safe(value: Any) -> str:
    text = clean(value).replace("\n", " ").replace("\t", " ")
    return re.sub(r"[&<>|`\[\]]", lambda match: f"&#{ord(match[0])};", text)


def _fenced(text: str) -> str:
    return clean(text).replace("```", "'''")
