"""``evaluate.Metric`` over bertkit's figures: ``evaluate.load(FOLDER, NAME)``.

NAME is one figure of classes or numbers (accuracy, f1, f1_macro, f1_micro, matthews, pearson, spearman), or a family of them:
multilabel (several labels a row), entities (tags a word), squad and squad_v2 (answers, in the form that evaluate's own take).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate

from bertkit.metrics import classification, correlation
from bertkit.metrics.entities import entity_scores
from bertkit.metrics.squad import squad_scores

_INT, _FLOAT, _TEXT = (datasets.Value(kind) for kind in ("int64", "float64", "string"))
_LABELS = ("accuracy", "f1", "f1_macro", "f1_micro", "matthews")
_NUMBERS = ("pearson", "spearman")
# What one prediction is, and what one reference.
_FORMS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(_LABELS, (_INT, _INT)),
    **dict.fromkeys(_NUMBERS, (_FLOAT, _FLOAT)),
    "multilabel": (datasets.Sequence(_INT), datasets.Sequence(_INT)),
    "entities": (datasets.Sequence(_TEXT), datasets.Sequence(_TEXT)),
    **dict.fromkeys(
        ("squad", "squad_v2"),
        (
            {"id": _TEXT, "prediction_text": _TEXT},
            {"id": _TEXT, "answers": datasets.Sequence({"text": _TEXT, "answer_start": _INT})},
        ),
    ),
}


class Shell(evaluate.Metric):  # type: ignore[misc]
    """One figure, or a family, by the pure functions of :mod:`bertkit.metrics`."""

    def _info(self) -> Any:
        if self.config_name not in _FORMS:
            raise ValueError(f"the configuration must be one of {', '.join(_FORMS)}, not {self.config_name!r}")
        prediction, reference = _FORMS[self.config_name]
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description="predictions and references, one a row; for f1, positive: the label that counts (1).",
            features=datasets.Features({"predictions": prediction, "references": reference}),
        )

    def _compute(self, predictions: Any, references: Any, positive: int = 1) -> dict[str, float | None]:
        name = self.config_name
        if name in _NUMBERS:
            return {name: getattr(correlation, name)(references, predictions)}
        if name == "multilabel":
            return _several(predictions, references)
        if name == "entities":
            return dict(entity_scores(references, predictions).metrics())
        if name in ("squad", "squad_v2"):
            return _answers(predictions, references, version=2 if name == "squad_v2" else 1)
        more = {"positive": positive} if name == "f1" else {}
        return {name: getattr(classification, name)(references, predictions, **more)}


def _several(predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]) -> dict[str, float | None]:
    """Rows of 0 and 1, a column a label."""
    names = [str(column) for column in range(len(references[0]) if references else 0)]

    def sets(rows: Sequence[Sequence[int]]) -> list[frozenset[str]]:
        return [frozenset(name for name, on in zip(names, row, strict=True) if on) for row in rows]

    golds, guesses = sets(references), sets(predictions)
    micro, macro = classification.f1_of_sets(golds, guesses, names)
    return {"f1_micro": micro, "f1_macro": macro, "accuracy": classification.accuracy(golds, guesses)}


def _answers(
    predictions: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], *, version: int
) -> dict[str, float | None]:
    golds = {row["id"]: list(row["answers"]["text"]) for row in references}
    found = squad_scores(golds, {row["id"]: row["prediction_text"] for row in predictions}, version=version)
    return {name: float(value) for name, value in found.items()}
