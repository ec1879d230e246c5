"""``bertkit eval``: a finished model, or a file of predictions, against a task's gold, with the official arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import FolderError, MissingError, UsageError, nearest
from bertkit.jobs.added_metrics import AddedMetrics
from bertkit.jobs.as_trained import data_as_trained, kind_as_trained
from bertkit.jobs.console import Console
from bertkit.jobs.evaluated import Evaluation, ScoredPart
from bertkit.jobs.folder import newest_run
from bertkit.jobs.gates import Gates
from bertkit.jobs.given import given_predictions
from bertkit.jobs.lost import watching
from bertkit.jobs.material import judged_task, task_of
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import file_in_the_way
from bertkit.jobs.scoring import EncodedPart, Scorer, scored_tokens
from bertkit.jobs.start import Machine
from bertkit.jobs.verdicts import reported
from bertkit.notices import say
from bertkit.settings.commands import EvalSettings
from bertkit.tasks.data import TaskPart, load_parts, require_gold
from bertkit.tasks.kinds import HandsGoldOn, Kind
from bertkit.tasks.models import load_model
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named
from bertkit.tasks.task import Task


def evaluate(settings: EvalSettings, console: Console) -> Outcome:
    """Scores every validation part of a task, or the part that is named, and leaves ``evals/TASK-PART/`` in the run folder.

    Raises:
        DataError: The part has no labels, or what it is compared with is of other examples (exit 3).
        ModelError: The model's head is untrained or has other labels (exit 3).
        MissingError: No model, data, predictions to compare with, or network (exit 4).
        GateError: A gate was not met (exit 7); everything was written and said.
    """
    machine = Machine.of(settings.device)
    with watching(machine.peers, console), reported(settings.gates.junit, settings.task, machine.peers):
        return _evaluate(settings, console, machine)


def _evaluate(settings: EvalSettings, console: Console, machine: Machine) -> Outcome:
    if settings.output is not None:
        _need_folder(Path(settings.output))  # before the work, not behind it
    model = None if settings.predictions is not None else machine.peers.main_only(lambda: chosen_model(settings))
    if model is not None:
        settings = data_as_trained(settings, model, places=True)
    task, kind = task_of(settings.task, settings.data)
    parts = machine.peers.main_only(lambda: chosen_parts(task, settings, ("validation",)))
    for part in parts.values():
        require_gold(kind, task, part)
        console.say(f"{part.name}: {len(part.rows):,} rows of {part.source}")
    task = judged_task(task, kind, next(iter(parts.values())))
    scorer = None
    if model is None:
        first = next(iter(parts))
        if len(parts) > 1:
            say("part", f"The predictions are taken for those of {first}; --part names another.")
        parts = {first: parts[first]}
        labels = kind.labels(parts[first].rows, task, None, for_training=False)
    else:
        scorer = scorer_of(model, settings, task, kind, next(iter(parts.values())), machine)
        labels = scorer.labels
    gates: list[Gates] = []
    if settings.gates.any:  # the first process keeps them: what they compare with is read before any work
        machine.peers.main_only(lambda: gates.append(Gates(settings.gates, task, kind, labels, parts)))
    added = AddedMetrics(settings.metrics, console, machine.peers)
    added.rehearse(kind, parts.values(), labels)
    scored = {}
    for name, part in parts.items():
        if scorer is None or model is None:
            said = given_predictions(kind, Path(str(settings.predictions)), part, task, labels)
            scored[name] = ScoredPart(part=part, predictions=said)
        else:
            encoded = encoded_part(scorer, part, model, settings, console)
            if not encoded.encoded.coverage.lines():
                console.say(f"{name}: nothing is out of reach, every text is read whole.")
            said = predicted_part(scorer, encoded, console)
            scored[name] = ScoredPart(part=part, predictions=said, coverage=encoded.encoded.coverage)
    evaluation = Evaluation(settings=settings, task=task, kind=kind, labels=labels, model=model, added=added.metrics)
    return machine.peers.main_only(lambda: evaluation.finish(scored, gates[0] if gates else None, console))


def _need_folder(output: Path) -> None:
    if (there := file_in_the_way(output)) is not None:
        raise FolderError("Evaluations go to a folder, and this is a file.", where=str(there), hint="Choose another --output.")


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


def predict_part(scorer: Scorer, part: TaskPart, folder: Path, settings: Any, console: Console) -> list[Prediction]:
    """The model's predictions for every row, with progress; on the first process."""
    return predicted_part(scorer, encoded_part(scorer, part, folder, settings, console), console)


def predicted_part(scorer: Scorer, encoded: EncodedPart, console: Console) -> list[Prediction]:
    """The same, of examples that are made already."""
    with console.stop.deferred(), console.progress(f"Scoring {encoded.part.name}", len(encoded.encoded.examples)) as update:
        found = scorer.predictions(encoded, stop=lambda: console.stop.number, progress=update)
    if found is None:
        raise console.stop.error()
    return found


def chosen_parts(task: Task, settings: Any, roles: tuple[str, ...], *, streamed: bool = False) -> dict[str, TaskPart]:
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
    found = load_parts(
        task,
        roles,
        folder=data.folder,
        train_file=data.train_file,
        validation_file=data.validation_file,
        test_file=data.test_file,
        max_eval_samples=data.max_eval_samples,
        strict=data.strict,
        streamed=streamed,
    )
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
    folder: Path,
    settings: Any,
    task: Task,
    kind: Kind,
    part: TaskPart,
    machine: Machine,
    *,
    must_have_head: bool = True,
    scored: bool = True,
) -> Scorer:
    """A trained model of ``folder``, on its device, ready to score or (not ``scored``) to predict.

    Raises:
        ModelError: Its head is untrained, or has other labels than the task.
    """
    config = config_of(folder)
    if not scored and isinstance(kind, HandsGoldOn):
        labels = kind.labels_unscored(part.rows, task, config.labels)
    else:
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
        labels=labels,
        settings=kind_settings,
        machine=machine,
        micro_tokens=settings.batch.micro_tokens or scored_tokens(machine),
        batch_size=settings.batch.size,
    )


def encoded_part(scorer: Scorer, part: TaskPart, folder: Path, settings: Any, console: Console) -> EncodedPart:
    """The part's examples; what the settings put out of reach is said."""
    wordpiece = tokenizer_of(folder, cased=settings.cased)
    encoded = scorer.kind.encode(
        part.rows, wordpiece, scorer.labels, scorer.settings, segments=scorer.model.config.type_vocab_size
    )
    for line in encoded.coverage.lines():
        console.say(f"{part.name}: {line}")
    return EncodedPart(part=part, encoded=encoded)
