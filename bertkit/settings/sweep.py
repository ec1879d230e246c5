"""A sweep: one fine-tuning as several runs that differ in a seed, a rate, epochs or the batch size, and no other setting.

In: the settings of the whole. Out: the settings of each run, its *trial*, as if it had been asked for alone.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field

from bertkit.fields import Settings
from bertkit.settings.compare import given
from bertkit.settings.layers import nest

S = TypeVar("S", bound=Settings)
Rate = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class SweepSettings(Settings):
    """Which runs a sweep is of: every combination of what is listed here (the grid of Devlin et al. 2019, A.3)."""

    learning_rates: tuple[Rate, ...] = Field((), description="Peak learning rates to try; --lr 2e-5,3e-5 lists them.")
    epochs: tuple[Rate, ...] = Field((), description="Counts of epochs to try; --epochs 2,3,4 lists them.")
    batch_sizes: tuple[Count, ...] = Field((), description="Sequences per optimizer step to try; --batch-size 16,32 lists them.")
    seeds: tuple[Seed, ...] = Field((), description="Seeds: every combination is trained with each of them.")

    @property
    def on(self) -> bool:
        """Is anything listed?"""
        return any(getattr(self, axis.field) for axis in AXES)


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that trials differ in: its field here, the setting of a run, and its word in names and tables."""

    field: str
    key: str
    word: str


AXES = (
    Axis("learning_rates", "optimizer.learning_rate", "lr"),
    Axis("epochs", "budget.epochs", "epochs"),
    Axis("batch_sizes", "batch.size", "batch"),
    Axis("seeds", "run.seed", "seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a sweep.

    Attributes:
        values: What it has of its own, by the axis's word: ``{"lr": 2e-5, "seed": 1}``.
        settings: Its dotted keys.
    """

    values: dict[str, float]
    settings: dict[str, float]

    @property
    def name(self) -> str:
        """``lr-2e-05-seed-1``, the name of its folder."""
        return "-".join(f"{word}-{value:g}" for word, value in self.values.items())

    @property
    def combination(self) -> tuple[tuple[str, float], ...]:
        """Its values without the seed: trials that share them are one combination."""
        return tuple((word, value) for word, value in self.values.items() if word != "seed")


def trials(sweep: SweepSettings) -> list[Trial]:
    """Every combination, the seeds of one behind another."""
    axes = [axis for axis in AXES if getattr(sweep, axis.field)]
    return [
        Trial(
            values={axis.word: value for axis, value in zip(axes, values, strict=True)},
            settings={axis.key: value for axis, value in zip(axes, values, strict=True)},
        )
        for values in itertools.product(*(getattr(sweep, axis.field) for axis in axes))
    ]


def settings_of(settings: S, trial: Trial, output: str) -> S:
    """The settings of one trial: what was asked for of the whole, with the trial's own values and its folder."""
    asked = {key: value for key, value in given(settings).items() if not key.startswith("sweep.")}
    tree = nest({**asked, **trial.settings}) | {"output": output}
    return type(settings).model_validate_json(json.dumps(tree))


def contradictions(settings: Any, defaults: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys and a sentence of what a sweep lists beside another value of its own; ``defaults`` nobody has given."""
    sweep: SweepSettings = settings.sweep
    for axis in AXES:
        listed = getattr(sweep, axis.field)
        section, _, name = axis.key.partition(".")
        part = getattr(settings, section)
        value = getattr(part, name)
        if len({f"{each:g}" for each in listed}) < len(listed):
            yield (f"sweep.{axis.field}",), f"sweep.{axis.field} lists a value twice."
        if listed and name in part.model_fields_set and value not in (*listed, None, defaults.get(axis.key)):
            yield (
                (f"sweep.{axis.field}", axis.key),
                f"The sweep tries {', '.join(f'{each:g}' for each in listed)}, and {axis.key} is {value:g}: give one of them.",
            )
    if sweep.epochs and settings.budget.steps is not None:
        yield ("sweep.epochs", "budget.steps"), "Epochs to try have no meaning where steps end every run: give epochs or steps."
