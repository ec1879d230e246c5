"""``bertkit eval``: a finished model, or a file of predictions, against a task's gold, with the official arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError, MissingError, UsageError, nearest
from bertkit.jobs.as_trained import data_as_trained, kind_as_trained
from bertkit.jobs.console import Console, to_json
from bertkit.jobs.finetune import task_of
from bertkit.jobs.folder import newest_run
from bertkit.jobs.lost import watching
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import write_text
from bertkit.jobs.pretrained import evals_place
from bertkit.jobs.scoring import EncodedPart, Scorer, figures_of
from bertkit.jobs.start import Machine
from bertkit.notices import say
from bertkit.settings.commands import EvalSettings
from bertkit.tasks.data import TaskPart, load_parts, require_gold
from bertkit.tasks.kinds import Kind, Labels, Prediction, Scores
from bertkit.tasks.models import load_model
from bertkit.tasks.predictions import by_id, check_form, read_predictions, write_predictions
from bertkit.tasks.registry import task_named
from bertkit.tasks.task import Task


def evaluate(settings: EvalSettings, console: Console) -> Outcome:
    """Scores every validation part of a task, or the part that is named, and leaves ``evals/TASK-PART/`` in the run folder.

    Raises:
        DataError: The part has no labels (exit 3).
        ModelError: The model's head is untrained or has other labels (exit 3).
        MissingError: No model, data or network (exit 4).
    """
    machine = Machine.of(settings.device)
    with watching(machine.peers, console):
        return _evaluate(settings, console, machine)


def _evaluate(settings: EvalSettings, console: Console, machine: Machine) -> Outcome:
    model = None if settings.predictions is not None else machine.peers.main_only(lambda: chosen_model(settings))
    if model is not None:
        settings = data_as_trained(settings, model, places=True)
    task, kind = task_of(settings.task, settings.data)
    parts = machine.peers.main_only(lambda: chosen_parts(task, settings, ("validation",)))
    for part in parts.values():
        require_gold(kind, task, part)
        console.say(f"{part.name}: {len(part.rows):,} rows of {part.source}")
    if model is None:
        first = next(iter(parts))
        if len(parts) > 1:
            say("part", f"The predictions are taken for those of {first}; --part names another.")
        parts = {first: parts[first]}
        labels = kind.labels(parts[first].rows, task, None, for_training=False)
        predictions = {first: given_predictions(kind, Path(str(settings.predictions)), parts[first], task, labels)}
    else:
        scorer = scorer_of(model, settings, task, kind, next(iter(parts.values())), machine)
        labels = scorer.labels
        predictions = {name: predict_part(scorer, part, model, settings, console) for name, part in parts.items()}
    if not machine.peers.main:
        return Outcome()
    scores = {name: kind.score(found, parts[name].rows, task, labels) for name, found in predictions.items()}
    written = [
        _write(_place(settings, model, task, name), settings, task, kind, parts[name], predictions[name], scores[name], model)
        for name in parts
    ]
    figures = figures_of(scores, task)
    console.metrics(figures)
    for where in written:
        console.say(f"Written to {where}")
    return Outcome(output=written[0], metrics=figures, extra={"model": None if model is None else str(model)})


def chosen_model(settings: Any) -> Path:
    """The model that is named, or the newest finished run of the task, which is said.

    Raises:
        MissingError: None is named and there is no such run; the command that makes one is said (exit 4).
    """
    if settings.model is not None:
        return model_folder(settings.model)
    task = task_named(settings.task).trained_as
    found = newest_run("finetune", task=task, hint=f"bertkit finetune {task} makes one; or name a model with --model.")
    say("model", f"The model is the newest finished run of {task}: {found}.")
    return found


def given_predictions(kind: Kind, path: Path, part: TaskPart, task: Task, labels: Labels) -> list[Prediction]:
    """Predictions of any system, one a row: bertkit's own JSON lines, or the official scorer's format.

    Raises:
        DataError: The file has no prediction for a row, or is of no known form (exit 3).
    """
    if path.suffix != ".jsonl":
        return kind.read_official(path, part.rows, task, labels)
    found = by_id(read_predictions(path), str(path))
    missing = [row for row in part.rows if row.id not in found]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(part.rows)} rows have no prediction, the first is {missing[0].id!r}.", where=str(path)
        )
    # The gold is the data's: the file may stem from a part that had none.
    golds = kind.golds(part.rows, labels)
    predictions = [replace(found[row.id], gold=gold) for row, gold in zip(part.rows, golds, strict=True)]
    check_form(predictions, golds, labels, str(path))
    return predictions


def predict_part(scorer: Scorer, part: TaskPart, folder: Path, settings: Any, console: Console) -> list[Prediction]:
    """The model's predictions for every row, with progress; on the first process."""
    encoded = encoded_part(scorer, part, folder, settings, console)
    with console.stop.deferred(), console.progress(f"Scoring {part.name}", len(encoded.encoded.examples)) as update:
        found = scorer.predictions(encoded, stop=lambda: console.stop.number, progress=update)
    if found is None:
        raise console.stop.error()
    return found


def _place(settings: EvalSettings, model: Path | None, task: Task, part: str) -> Path:
    """``evals/TASK-PART`` in the run, or below ``runs/`` where the model is no run of bertkit's."""
    scored = model.name if model is not None else Path(str(settings.predictions)).stem
    return evals_place(model, f"{task.name}-{part}", scored=scored, output=settings.output)


def _write(
    where: Path,
    settings: EvalSettings,
    task: Task,
    kind: Kind,
    part: TaskPart,
    predictions: list[Prediction],
    scores: Scores,
    model: Path | None,
) -> Path:
    where.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {
        "task": task.name,
        "part": part.name,
        "data": part.source,
        "model": settings.predictions if model is None else str(model),
        "primary": scores.primary,
    }
    official = [] if model is None else kind.write_official(where, predictions, part.rows, task, part.name)
    write_predictions(where / "predictions.jsonl", predictions)
    facts["files"] = sorted({"metrics.json", "predictions.jsonl", *(path.name for path in official)})
    write_text(where / "metrics.json", to_json(figures_of({part.name: scores}, task) | facts, indent=2) + "\n")
    return where


def chosen_parts(task: Task, settings: Any, roles: tuple[str, ...]) -> dict[str, TaskPart]:
    """The parts of the roles, or the one that ``--part`` names (``validation``, or ``validation_mismatched`` exactly)."""
    part = settings.part
    if part is not None:
        roles = (part.partition("_")[0],)
        known = sorted({p.name for p in task.parts} | {p.role for p in task.parts})
        if part not in known:
            raise UsageError(
                f"{task.name} has no part {part!r}.{nearest(part, known)}", where="--part", hint=f"Parts: {', '.join(known)}."
            )
    elif settings.data.test_file is not None and settings.data.validation_file is None and settings.data.folder is None:
        roles = ("test",)
    elif not any(p.role in roles for p in task.parts):
        roles = (task.parts[0].role,)  # a task of one part, AX
    data = settings.data
    if "validation" in roles and data.train_file is not None and data.validation_file is None:
        roles = ("train", "validation")  # what was held out of the training rows is found again from them
    found = load_parts(
        task,
        roles,
        folder=data.folder,
        train_file=data.train_file,
        validation_file=data.validation_file,
        test_file=data.test_file,
        max_eval_samples=data.max_eval_samples,
        strict=data.strict,
    )
    if roles[0] == "train" and part != "train":
        found.pop("train", None)
    return found if part is None else _the_part(found, part, task)


def _the_part(found: dict[str, TaskPart], part: str, task: Task) -> dict[str, TaskPart]:
    """The part that is named, or all of the role that is; a file that is named by itself is the part that one says it is."""
    role = part.partition("_")[0]
    if part in found:
        return {part: found[part]}
    if part == role:
        return found
    if set(found) == {role}:
        return {part: replace(found[role], name=part)}
    raise MissingError(
        f"There is no {part} part of {task.name}; there is {', '.join(found)}.",
        where=next(iter(found.values())).source,
        hint=f"Give a folder with {task.part(part).files[0]} as --data.",
    )


def scorer_of(
    folder: Path, settings: Any, task: Task, kind: Kind, part: TaskPart, machine: Machine, *, must_have_head: bool = True
) -> Scorer:
    """A trained model of ``folder``, on its device, ready to score or to predict.

    Raises:
        ModelError: Its head is untrained, or has other labels than the task.
    """
    config = config_of(folder)
    labels = kind.labels(part.rows, task, config.labels, for_training=False)
    kind_settings = kind_as_trained(settings, folder)
    if kind_settings.max_length > config.max_position_embeddings and "max_length" not in kind_settings.model_fields_set:
        kind_settings = kind_settings.model_copy(update={"max_length": config.max_position_embeddings})
    kind_settings.check_positions(config.max_position_embeddings)
    model, _ = load_model(
        folder,
        kind.head,
        labels=labels.names or None,
        problem_type=labels.problem or None,
        must_have_head=must_have_head,
    )
    return Scorer(
        model=model.to(machine.device),  # Accelerate's prepare_model would do no more here, and import torch's sharding for it
        kind=kind,
        task=task,
        labels=labels,
        settings=kind_settings,
        machine=machine,
        micro_tokens=settings.batch.micro_tokens or 2 * machine.micro_tokens,
        batch_size=settings.batch.size,
    )


def encoded_part(scorer: Scorer, part: TaskPart, folder: Path, settings: Any, console: Console) -> EncodedPart:
    """The part's examples; what the settings put out of reach is said."""
    wordpiece = tokenizer_of(folder, cased=settings.cased)
    encoded = scorer.kind.encode(
        part.rows, wordpiece, scorer.labels, scorer.settings, segments=scorer.model.config.type_vocab_size
    )
    lines = encoded.coverage.lines()
    for line in lines:
        console.say(f"{part.name}: {line}")
    return EncodedPart(part=part, encoded=encoded)
