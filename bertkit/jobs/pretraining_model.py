"""What a pretraining starts from: its vocabulary, its configuration and its weights.

Each is the named one's, that of the model which is gone on from, the run's own where it goes on, or new.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from bertkit.batches.phases import Phase, phases_text
from bertkit.corpus.new_words import NewWords
from bertkit.corpus.wordpiece import WordPiece, check_specials, load_wordpiece
from bertkit.errors import BertkitError, SettingsError
from bertkit.jobs.console import Console
from bertkit.jobs.corpus_vocabulary import vocabulary_of
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.models import check_vocabulary, config_of, model_folder, tokenizer_of
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.jobs.new_words import new_words
from bertkit.jobs.pretraining_batches import phases_of
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings
from bertkit.settings.parts import ModelSettings
from bertkit.tasks.models import TaskModel, build_model, load_model
from bertkit.tasks.new_words import with_new_words
from bertkit.tasks.pretraining import unigram_bias
from bertkit.training.checkpoint import Checkpoint


class PretrainingModel:
    """The vocabulary and the shape of the model, read or made when this is made; :meth:`build` gives its weights.

    Args:
        settings: As asked for.
        corpus: What the text is read from.
        size: The size of a new one.
        checkpoint: Where the run goes on, or None.
        console: For progress.
        machine: The first process makes what is made.
        folder: The run folder; a vocabulary that is trained is kept in it.

    Attributes:
        base: The folder of the model that is gone on from, or None.
        wordpiece: The vocabulary, new words included.
        new_words: Those of ``--add-words``, or None.
        config: The encoder.

    Raises:
        BertkitError: Something named is not there or does not fit.
    """

    def __init__(
        self,
        settings: PretrainSettings,
        *,
        corpus: NamedCorpus,
        size: str,
        checkpoint: Checkpoint | None,
        console: Console,
        machine: Machine,
        folder: RunFolder,
    ) -> None:
        self.settings, self.corpus, self.size, self.checkpoint = settings, corpus, size, checkpoint
        self.console, self.folder = console, folder
        peers = machine.peers
        self.base = None
        if settings.model.init_from is not None:
            init_from = settings.model.init_from
            self.base = peers.main_only(lambda: model_folder(init_from))
            config_of(self.base)  # before its tokenizer: a folder that is no model is said to be one
        self.wordpiece = peers.main_only(self._vocabulary)
        self.new_words: NewWords | None = None
        if (words := settings.model.add_words) is not None:
            found = peers.main_only(lambda: new_words(words, self.wordpiece, console))
            self.new_words, self.wordpiece = found, found.wordpiece
            peers.main_only(lambda: corpus.must_agree(found.wordpiece, f"the model with the words of {words}"))
        self.config = self._config()

    def build(self, frequencies: np.ndarray) -> TaskModel:
        """The model with its weights: of the checkpoint, of the model that is gone on from, or new.

        Args:
            frequencies: ``[V]`` how often each id stands in the training text, for the output bias of a new one.
        """
        head = "pretraining" if self.settings.examples.pairs else "masked_lm"
        seed, save_memory = self.settings.run.seed, self.settings.batch.save_memory
        if self.checkpoint is not None:
            return load_model(self.checkpoint.path, head, must_have_head=True, seed=seed, save_memory=save_memory)[0]
        if self.base is not None:
            changes = dropout_fields(self.settings.model)
            model = load_model(self.base, head, seed=seed, save_memory=save_memory, changes=changes)[0]
            if (words := self.new_words) is None:
                return model
            size = self.config.vocab_size
            return with_new_words(model, words.ids, words.pieces, vocab_size=size, save_memory=save_memory)
        model = build_model(head, self.config, seed=seed, save_memory=save_memory)
        if self.settings.model.unigram_bias:
            model.head.mlm.start_bias(unigram_bias(frequencies))  # type: ignore[union-attr, operator]
        return model

    def _vocabulary(self) -> WordPiece:
        """The one that is named, the model's that is gone on from, the run's own, the token stores', or a new one trained on
        the text. Stores are read with the tokenizer that made them alone.
        """
        named = self.settings.tokenizer
        wordpiece, where = self._given()
        if wordpiece is None and (wordpiece := self.corpus.tokenizer()) is not None:
            if named.vocab_size is not None or (named.cased is not None and named.cased == wordpiece.lowercase):
                raise SettingsError("A token store has its vocabulary: leave --vocab-size, --cased and --uncased out.")
            return wordpiece
        if wordpiece is not None:
            if self.settings.model.add_words is None:
                self.corpus.must_agree(wordpiece, where)
            return wordpiece
        assert self.corpus.texts is not None
        wordpiece = vocabulary_of(self.corpus.texts, self.settings.corpus, named, self.console)
        self.folder.made("vocab.txt", "tokenizer.json", "tokenizer_config.json")
        wordpiece.save(self.folder.path, max_length=512)
        return wordpiece

    def _given(self) -> tuple[WordPiece | None, str]:
        """One that lies somewhere, and where."""
        named = self.settings.tokenizer
        if named.path is not None:
            return load_wordpiece(Path(named.path), cased=named.cased), named.path
        if self.base is not None:
            return tokenizer_of(self.base, cased=named.cased), str(self.base)
        if self.checkpoint is not None:  # verified, whatever has become of the run folder's own since
            return load_wordpiece(self.checkpoint.path), str(self.checkpoint.path)
        return None, ""

    def _config(self) -> EncoderConfig:
        settings = self.settings
        if self.base is not None:
            config = config_of(self.base)
            check_specials(self.wordpiece, pad_token_id=config.pad_token_id)
            before = self.new_words.before if self.new_words else self.wordpiece
            check_vocabulary(before, config, str(settings.tokenizer.path or self.base))
            if settings.tokenizer.path is not None:
                _say_other_entries(before, settings.tokenizer.path, self.base)
            if self.new_words:
                config = config.changed(vocab_size=max(config.vocab_size, self.wordpiece.size))
        else:
            check_specials(self.wordpiece)
            positions = max(512, *(phase.max_length for phase in phases_of(settings)))
            config = EncoderConfig.of_size(
                self.size,
                vocab_size=self.wordpiece.size,
                pad_token_id=self.wordpiece.pad_id,
                max_position_embeddings=positions,
            )
        if config.type_vocab_size == 1 and settings.examples.objective != "mlm":
            say("one-segment", "The model has one segment (type_vocab_size 1): both texts of a pair are of segment 0.")
        config = config.changed(**dropout_fields(settings.model))
        _check_positions(phases_of(settings), config.max_position_embeddings, "phases" if settings.phases else "max_length")
        return config


def _say_other_entries(wordpiece: WordPiece, named: str, base: Path) -> None:
    """Says how many entries of the vocabulary that was named are others than those that the model learned."""
    try:
        own = tokenizer_of(base, cased=not wordpiece.lowercase)
    except BertkitError:  # it has none, or one that cannot be read: that is why another was named
        return
    differ = sum(a != b for a, b in zip_longest(own.vocabulary, wordpiece.vocabulary))
    if differ:
        say(
            "other-vocabulary",
            f"{differ:,} of the {wordpiece.size:,} entries of {named} are others than in {base}: "
            "what the model learned of those pieces is worth nothing here. Without --tokenizer it goes on with its own.",
        )


def _check_positions(phases: Sequence[Phase], positions: int, name: str) -> None:
    longest = max(phase.max_length for phase in phases)
    if longest > positions:
        flag = f"--phases with lengths up to {positions}" if name == "phases" else f"--max-length {positions} or less"
        raise SettingsError(
            f"The sequences are {longest} tokens long, but the model has {positions} positions.",
            where=phases_text(phases) if name == "phases" else "examples.max_length",
            hint=f"Use {flag}.",
        )


def dropout_fields(model: ModelSettings) -> dict[str, float]:
    """Fields of the model's configuration, where a dropout of its own is asked for."""
    hidden, attention = model.dropout, model.attention_dropout
    asked = {"hidden_dropout_prob": hidden, "attention_probs_dropout_prob": hidden if attention is None else attention}
    return {name: share for name, share in asked.items() if share is not None}
