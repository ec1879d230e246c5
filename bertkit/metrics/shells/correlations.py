"""``evaluate.Metric`` over bertkit's correlations; its configuration names the figure: pearson, spearman."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

from bertkit.metrics import correlation

_FIGURES = ("pearson", "spearman")


class Correlations(evaluate.Metric):  # type: ignore[misc]
    """One correlation of numbers, by :mod:`bertkit.metrics.correlation`."""

    def _info(self) -> Any:
        if self.config_name not in _FIGURES:
            raise ValueError(f"the configuration must be one of {', '.join(_FIGURES)}, not {self.config_name!r}")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description="predictions and references: numbers.",
            features=datasets.Features({"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}),
        )

    def _compute(self, predictions: list[float], references: list[float]) -> dict[str, float | None]:
        return {self.config_name: getattr(correlation, self.config_name)(references, predictions)}
