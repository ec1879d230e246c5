"""A pretraining as its folder tells it: settings, vocabulary, text and batches, the same as when it ran."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bertkit.batches.plan import RULES
from bertkit.batches.pretraining import PretrainingSource
from bertkit.corpus.new_words import read_new_words
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, UsageError
from bertkit.jobs.console import Console
from bertkit.jobs.models import config_of, model_folder
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.jobs.places import STATE, read_state
from bertkit.jobs.pretraining_batches import RULES_ARE, training_batches
from bertkit.jobs.pretraining_text import PretrainingText, pretraining_text
from bertkit.jobs.start import CHECKPOINTS, corpus_sizes, input_sizes
from bertkit.settings.commands import PretrainSettings
from bertkit.settings.layers import nest
from bertkit.training.budget import Budget
from bertkit.training.checkpoint import Checkpoint, newest_verified


class PretrainedRun:
    """Reads a run folder and writes nothing into it.

    Args:
        folder: The run folder; the run may be finished, stopped, or going on.

    Raises:
        UsageError: It is no pretraining, or one that has not begun (exit 2).
    """

    def __init__(self, folder: Path) -> None:
        state = read_state(folder)
        if state is None or state.get("command_name") != "pretrain":
            what = f"a run of `bertkit {state.get('command_name')}`" if state else "no run"
            raise UsageError(f"This is {what}, and `bertkit pretrain` alone has steps that can be shown.", where=str(folder))
        if not state.get("resolved"):
            raise UsageError("This run has not begun yet.", where=str(folder / STATE), hint="Start it first.")
        self.folder, self.state = folder, state
        self.settings = PretrainSettings.model_validate_json(json.dumps(nest(state["resolved"])))

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The newest whole one; it is read to its end, so only where the folder itself does not tell."""
        return newest_verified(self.folder / CHECKPOINTS)[0]

    @cached_property
    def identity(self) -> dict[str, str]:
        """Fingerprints of what the run began with."""
        kept = self.state.get("identity") or (self.checkpoint.extra.get("identity") if self.checkpoint else None)
        return dict(kept or {})

    @cached_property
    def wordpiece(self) -> WordPiece:
        """The vocabulary.

        Raises:
            DataError: It is not the one that the run began with.
        """
        found = self._vocabulary()
        if self.identity.get("tokenizer") not in (None, found.fingerprint):
            raise DataError("The vocabulary is not the one that the run began with.", where=str(self.folder))
        return found

    def _vocabulary(self) -> WordPiece:
        named, model = self.settings.tokenizer, self.settings.model
        if (self.folder / "vocab.txt").is_file():
            return load_wordpiece(self.folder)
        if self.checkpoint is not None:
            return load_wordpiece(self.checkpoint.path)
        if named.path is None and model.init_from is None:
            return self.corpus.tokenizer() or load_wordpiece(self.folder)
        wordpiece = load_wordpiece(Path(named.path or model_folder(str(model.init_from))), cased=named.cased)
        return wordpiece if model.add_words is None else read_new_words(Path(model.add_words), wordpiece).wordpiece

    @property
    def corpus(self) -> NamedCorpus:
        """What the text is read from."""
        return NamedCorpus.of(self.settings.inputs.corpus, self.settings.corpus)

    @property
    def segments(self) -> int:
        """The model's ``type_vocab_size``."""
        if (self.folder / "config.json").is_file():
            return config_of(self.folder).type_vocab_size
        if self.checkpoint is not None:
            return config_of(self.checkpoint.path).type_vocab_size
        base = self.settings.model.init_from
        return config_of(model_folder(base)).type_vocab_size if base else 2

    def text(self, console: Console) -> PretrainingText:
        """The text, out of the cache of token stores or built again.

        Raises:
            DataError: It has changed since the run began (exit 3).
            MissingError: It is not there (exit 4).
        """
        before, words = self.state.get("input_bytes") or {}, self.settings.corpus.words
        now = corpus_sizes(self.settings.inputs.corpus, self.settings.corpus) | input_sizes((words,))
        resized = [path for path, size in now.items() if before.get(path, size) != size]
        if resized:  # known at once, without a store of the new text
            raise self._changed(resized)
        text = pretraining_text(self.settings, self.corpus, self.wordpiece, console)
        if self.identity.get("text") not in (None, text.fingerprint):
            raise self._changed((*self.settings.inputs.corpus, *([words] if words else [])))
        return text

    def batches(self, text: PretrainingText) -> tuple[PretrainingSource, ...]:
        """Its batches, a source a phase, each step in one piece.

        Raises:
            DataError: This version of bertkit would make others (exit 3).
        """
        if self.identity.get(RULES_ARE) not in (None, str(RULES)):
            raise DataError(
                "This version of bertkit makes other examples than the one that the run began with.",
                where=str(self.folder),
                hint="bertkit.json names the version that made the run.",
            )
        batch = self.settings.batch.model_copy(update={"micro_tokens": None})
        whole = self.settings.model_copy(update={"batch": batch})
        return training_batches(whole, text, self.wordpiece, segments=self.segments)

    def budget(self, sources: Sequence[PretrainingSource]) -> Budget:
        """Its end; what its epochs have in steps was counted when it began."""
        wanted, planned = self.settings.budget, self.state.get("planned_steps")
        steps, epochs = (wanted.steps, wanted.epochs) if planned is None else (planned, None)
        return Budget.of(steps=steps, epochs=epochs, minutes=wanted.max_minutes, epoch_steps=sources[0].steps)

    def _changed(self, paths: Sequence[str]) -> DataError:
        return DataError(
            f"{' or '.join(paths)} has changed since this run began, so its batches cannot be made again.",
            where=str(self.folder),
            hint="Put the old text back.",
        )
