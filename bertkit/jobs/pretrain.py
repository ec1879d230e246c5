"""``bertkit pretrain``: text in, a run folder with a BERT out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertkit.batches.plan import RULES
from bertkit.batches.pretraining import PretrainingSource
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.holding import held
from bertkit.errors import DataError
from bertkit.jobs.console import Console
from bertkit.jobs.ending import already_finished, leave, told
from bertkit.jobs.finetuning import describe, write_model
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.pretraining_batches import RULES_ARE, phases_of, sizes, training_batches, validation_batches
from bertkit.jobs.pretraining_model import PretrainingModel
from bertkit.jobs.pretraining_text import PretrainingText, pretraining_text
from bertkit.jobs.start import Machine, became_values, check_inputs, claimed, corpus_sizes, input_sizes
from bertkit.jobs.training import Course
from bertkit.jobs.training_job import Figures, TrainingJob, check_identity, resuming
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings, run_name
from bertkit.settings.compare import fill, with_values
from bertkit.tasks.defaults import pretraining_defaults
from bertkit.tasks.models import TaskModel
from bertkit.training.evaluation import evaluate_losses
from bertkit.training.health import unigram_reference

DEFAULT_MINUTES = 60.0
PATIENCE = 2.0  # seconds that something may take without a word


def pretrain(settings: PretrainSettings, console: Console) -> Outcome:
    """Pretrains a BERT, or goes on where an earlier start of the same run was stopped.

    Raises:
        BertkitError: Each with its exit code; see :mod:`bertkit.errors`.
    """
    machine = Machine.of(settings.device, report_to=settings.run.report_to)
    size = settings.model.size or ("mini" if machine.on_cpu else "base")
    name = run_name(settings, "continued" if settings.model.init_from is not None else size)
    sizes = corpus_sizes(settings.inputs.corpus + settings.inputs.validation, settings.corpus)
    sizes |= input_sizes((settings.corpus.words, settings.model.add_words))
    facts = {"input_bytes": sizes}
    with claimed(settings, console, machine.peers, command="pretrain", name=name, facts=facts) as folder:
        if folder.situation == "finished":
            check_inputs(folder, sizes)
            return already_finished(folder, console)
        try:
            return _Pretraining(settings, console, machine.as_before(folder, settings), folder, size).run()
        except DataError as error:
            error.where = error.where or ", ".join(settings.inputs.corpus)
            raise


class _Pretraining:
    """One pretraining: what is read and built before the course begins."""

    def __init__(self, settings: PretrainSettings, console: Console, machine: Machine, folder: RunFolder, size: str) -> None:
        self.console, self.machine, self.folder = console, machine, folder
        self.size = became_values(folder).get("model.size") or size
        self.checkpoint = resuming(folder, machine)
        machine.peers.main_only(lambda: segmenter_of(settings.corpus.words) is None)  # what is no list is told before any work
        if settings.corpus.words is not None and settings.masking.kind == "token":
            say("words-not-masked", "Chinese words are given, but masking is by token: --masking word or span takes them whole.")
        self.corpus = NamedCorpus.of(settings.inputs.corpus, settings.corpus)
        self.start = PretrainingModel(
            settings,
            corpus=self.corpus,
            size=self.size,
            checkpoint=self.checkpoint,
            console=console,
            machine=machine,
            folder=folder,
        )
        self.wordpiece, self.config = self.start.wordpiece, self.start.config
        self.settings = self._resolved(settings)

    def run(self) -> Outcome:
        """Builds or finds the text, trains, and leaves the run folder finished."""
        text = self.machine.peers.main_only(lambda: pretraining_text(self.settings, self.corpus, self.wordpiece, self.console))
        with held([*text.store.folders, *text.validation.folders]):
            return self._trained(text)

    def _trained(self, text: PretrainingText) -> Outcome:
        frequencies = text.frequencies
        sources = training_batches(self.settings, text, self.wordpiece, segments=self.config.type_vocab_size)
        validation = validation_batches(self.settings, text, self.wordpiece, segments=self.config.type_vocab_size)
        phase, epoch = self._standing()
        self.machine.peers.main_only(lambda: self._draw(sources[phase], epoch))
        model = self.start.build(frequencies)
        reference, tokens = self.machine.peers.main_only(lambda: _known(validation, frequencies))
        job = self._job(model, sources, validation, reference, tokens, text)
        if self.machine.peers.main:
            self.folder.resolve(self.settings)
        self._announce(model, text, sources[phase].steps(epoch), reference)
        course = Course(
            job=job,
            settings=self.settings,
            console=self.console,
            folder=self.folder,
            machine=self.machine,
            checkpoint=self.checkpoint,
        )
        return told(leave(course.run(), self.folder, self.settings, self.machine), self.folder, self.console)

    def _standing(self) -> tuple[int, int]:
        """The phase and the epoch in which the training starts or goes on."""
        if self.checkpoint is None:
            return 0, 0
        began = self.checkpoint.extra.get("phases_began") or [0]
        return len(began) - 1, max(int(self.checkpoint.state["train"]["epoch"]), began[-1])

    def _draw(self, source: PretrainingSource, epoch: int) -> None:
        """Draws the epoch that comes first, in front of the person who waits for it."""
        began = time.monotonic()
        with self.console.progress("Drawing the examples of an epoch", safe=True) as update:
            source.plan(epoch, lambda done, total: update(done, total) if time.monotonic() - began > PATIENCE else None)

    def _resolved(self, settings: PretrainSettings) -> PretrainSettings:
        """Automatic values as they become."""
        asked, before = settings.optimizer, became_values(self.folder)
        defaults = pretraining_defaults(
            self.config.hidden_size,
            optimizer=asked.name if "name" in asked.model_fields_set else None,
            going_on=self.start.base is not None,
        )
        late: dict[str, Any] = {
            # An unfinished run that does not tell is of a time when there was one default.
            "optimizer.name": "adamw" if before else defaults["optimizer"],
            "optimizer.learning_rate": defaults["learning_rate"],
            "batch.size": defaults["batch_size"],
            "batch.micro_tokens": self.machine.micro_tokens,
            "run.workers": 0 if self.machine.on_cpu else 2,
        }
        budget = settings.budget
        if budget.steps is None and budget.epochs is None and budget.max_minutes is None:
            late["budget.max_minutes"] = DEFAULT_MINUTES
        if self.start.base is None:
            late["model.size"] = self.size
        if settings.phases:
            late["examples.max_length"] = max(phase.max_length for phase in settings.phases)
        late |= {key: before[key] for key in late if before.get(key) is not None}
        return with_values(fill(settings, late), self.machine.became)

    def _job(
        self,
        model: TaskModel,
        sources: Sequence[PretrainingSource],
        validation: PretrainingSource,
        reference: float,
        validation_tokens: int,
        text: PretrainingText,
    ) -> TrainingJob:
        peers = self.machine.peers

        def validate() -> Figures | None:
            batches = (
                batch for index in range(validation.steps(0)) for batch in validation.step(0, index, peers.rank, peers.world)
            )
            parts = evaluate_losses(model, batches, self.machine.accelerator, peers, stop=lambda: self.console.stop.number)
            if parts is None:
                return None
            figures: Figures = {}
            for name, part in parts.items():
                figures |= {f"{name}_loss": part.mean, f"{name}_accuracy": part.accuracy}
            return figures | {"unigram_loss": reference}

        identity = {
            "text": text.fingerprint,
            "validation text": text.validation.fingerprint,
            "tokenizer": self.wordpiece.fingerprint,
            RULES_ARE: str(RULES),
        }
        if self.checkpoint is not None:
            check_identity(self.checkpoint, identity, self.folder.path)
        return TrainingJob(
            model=model,
            sources=sources,
            phases=self.settings.phases,
            write_model=lambda folder: write_model(model, self.wordpiece, folder),
            validate=validate,
            primary="mlm_loss",
            lower_is_better=True,
            validation_tokens=validation_tokens,
            identity=identity,
            reference=reference,
            smaller=f"bertkit pretrain --corpus {self.settings.inputs.corpus[0]} --size tiny --max-minutes 60",
            longest=self.settings.examples.max_length,
            word_targets=self.settings.masking.probability,
        )

    def _announce(self, model: TaskModel, text: PretrainingText, steps: int, reference: float) -> None:
        say_, settings = self.console.say, self.settings
        held = "the training text itself" if text.validates_on_itself else "held out, chosen by hash"
        if settings.inputs.validation:
            held = "the validation file"
        held_out = text.validation.counts["documents"]
        say_(
            f"Text: {text.documents:,} documents, {text.sentences:,} sentences, {text.tokens:,} tokens; "
            f"validation: {held_out:,} document{'' if held_out == 1 else 's'} ({held})."
        )
        say_(f"Vocabulary: {self.wordpiece.size:,} entries, {'uncased' if self.wordpiece.lowercase else 'cased'}.")
        what = f"going on from {self.start.base}" if self.start.base is not None else f"{settings.model.size} (new)"
        say_(f"Model: {what}, {describe(self.config)}, {sum(p.numel() for p in model.parameters()):,} weights.")
        budget = settings.budget
        ends = [f"{budget.max_minutes:g} minutes"] if budget.max_minutes is not None else []
        ends += [f"{budget.steps:,} steps"] if budget.steps is not None else []
        ends += [f"{budget.epochs:g} epochs"] if budget.epochs is not None else []
        say_(
            f"Training: {settings.examples.objective}, masking by {settings.masking.kind}, {_lengths(settings)} "
            f"({steps:,} steps an epoch), {settings.optimizer.name} at a peak rate of {settings.optimizer.learning_rate:g}, "
            f"{' or '.join(ends)}, {settings.device.precision}, seed {settings.run.seed}, into {self.folder.path}."
        )
        say_(f"Word frequencies alone give a masked-word loss of {reference:.3f} nats on the validation text.")


def _lengths(settings: PretrainSettings) -> str:
    """``L = 128, batches of 64``, or those of each phase with its share."""
    phases = list(zip(phases_of(settings), sizes(settings), strict=True))
    if len(phases) == 1:
        return f"L = {phases[0][0].max_length}, batches of {phases[0][1]}"
    of = "steps" if settings.budget.steps is not None or settings.budget.epochs is not None else "time"
    parts = [f"{100 * phase.share:.4g} % of the {of} with L = {phase.max_length} in batches of {size}" for phase, size in phases]
    return f"{', then '.join(parts)}, validation with L = {phases[-1][0].max_length}"


def _known(validation: PretrainingSource, frequencies: np.ndarray) -> tuple[float, int]:
    """The unigram reference of the masked validation words, and the tokens of one validation: one pass over its batches."""
    targets, tokens = [], 0
    for index in range(validation.steps(0)):
        for batch in validation.step(0, index):
            targets.append(batch.masked_labels.numpy())
            tokens += batch.tokens
    return unigram_reference(frequencies, np.concatenate(targets)), tokens
