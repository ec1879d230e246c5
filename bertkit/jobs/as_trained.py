"""What a run was trained with, for whoever scores or uses it: its kind's settings, its columns, its data.

Only what nobody gave is taken from the run, and it is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from bertkit.errors import DataError
from bertkit.jobs.places import read_figures, read_state
from bertkit.notices import say
from bertkit.settings.commands import EvalSettings, PredictSettings
from bertkit.settings.compare import fill
from bertkit.settings.parts import DataSettings
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.registry import task_named

S = TypeVar("S", EvalSettings, PredictSettings)

COLUMNS = ("text_column", "pair_column", "label_column", "label_separator", "candidate_columns", "label_form")
PLACES = ("folder", "validation_file", "train_file")
GIVEN = (*PLACES, "test_file")


def before(folder: Path, task: str) -> dict[str, Any]:
    """The resolved settings of the run in ``folder`` by dotted key; none where it is no run of this task."""
    try:
        state = read_state(folder) or {}
    except DataError:  # a model all the same
        state = {}
    return dict(state.get("resolved") or {}) if state.get("task") == task else {}


def data_as_trained(settings: S, folder: Path, *, places: bool) -> S:
    """The settings with the run's columns and, with ``places``, its data, where none are given."""
    run = before(folder, settings.task)
    names = [name for name in COLUMNS if name not in settings.data.model_fields_set]
    if places and not any(getattr(settings.data, name) is not None for name in GIVEN):
        names += PLACES
    found = {name: run[f"data.{name}"] for name in names if run.get(f"data.{name}") is not None}
    gone = [str(found[name]) for name in PLACES if name in found and not Path(found[name]).exists()]
    if gone:
        found = {name: value for name, value in found.items() if name not in PLACES}
        say("as-trained", f"The run's own data is not there any more ({', '.join(gone)}).")
    if not found:
        return settings
    if "folder" in found and Path(found["folder"]).is_file():  # eval's own --data file would be what it scores
        found["train_file"] = found.pop("folder")
    say("as-trained", f"As the model was trained: {_words(found)}.")
    return fill(settings, {f"data.{name}": value for name, value in found.items()})


def kind_as_trained(settings: Any, folder: Path) -> Any:
    """The kind's settings, those that nobody gave as the run was trained with: its figures come out again."""
    kind, run = settings.kind, before(folder, task_named(settings.task).trained_as)
    late = {
        name: value
        for name in type(kind).model_fields.keys() - kind.TRAINING
        if (value := run.get(f"kind.{name}")) is not None and name not in kind.model_fields_set and value != getattr(kind, name)
    }
    if not late:
        return kind
    say("as-trained", f"As the model was trained: {_words(late)}.")
    return type(kind).model_validate(kind.model_dump(include=kind.model_fields_set) | late)


def kind_as_tuned(kind: KindSettings, folder: Path, task: str) -> KindSettings:
    """The kind's settings for predictions: what nobody gave and a validation part tunes (the threshold of no answer).

    The figures are those that the training left in the run's ``metrics.json`` or, where they tune nothing, ``eval``'s of the
    validation part. Evaluations never take them: their figures would be those of a threshold that was chosen on the same rows.
    """
    for place in (folder, folder / "evals" / f"{task}-validation"):
        found = kind.tuned(read_figures(place))
        late = {name: value for name, value in found.items() if name not in kind.model_fields_set}
        if late:
            say("as-tuned", f"As tuned on the validation part: {_words(late)}; --set kind.{list(late)[-1]}=… is another.")
        if found:
            return type(kind).model_validate(kind.model_dump(include=kind.model_fields_set) | late)
    return kind


def _words(found: dict[str, Any]) -> str:
    named = {"folder": "data"} | {name: name.replace("_", " ") for name in DataSettings.model_fields if name != "folder"}
    return ", ".join(f"{named.get(name, name)} {value}" for name, value in found.items())
