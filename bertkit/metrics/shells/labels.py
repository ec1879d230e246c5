"""``evaluate.Metric`` over scores of labels; the configuration names one: accuracy, f1, f1_macro, f1_micro, matthews."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

from bertkit.metrics import classification

_FIGURES = ("accuracy", "f1", "f1_macro", "f1_micro", "matthews")


class Labels(evaluate.Metric):  # type: ignore[misc]
    """One figure of integer labels, by :mod:`bertkit.metrics.classification`."""

    def _info(self) -> Any:
        if self.config_name not in _FIGURES:
            raise ValueError(f"the configuration must be one of {', '.join(_FIGURES)}, not {self.config_name!r}")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description="predictions and references: integer labels; for f1, positive: the label that counts (1).",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
        )

    def _compute(self, predictions: list[int], references: list[int], positive: int = 1) -> dict[str, float | None]:
        if self.config_name == "f1":
            return {"f1": classification.f1(references, predictions, positive=positive)}
        return {self.config_name: getattr(classification, self.config_name)(references, predictions)}
