"""``bertkit bench pretrain``: steps of pretraining over a text, one's own or a made-up one; beside transformers where asked."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.bench.figures import OURS
from bertkit.bench.made_text import VOCABULARY, made_text
from bertkit.bench.pretraining import Ours
from bertkit.bench.training import Trainer, bench_training
from bertkit.bench.work import pretraining_flops
from bertkit.corpus.documents import CorpusSettings
from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.jobs.building import read_text
from bertkit.jobs.console import Console
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.settings.bench import BenchPretrainSettings
from bertkit.training import precision

_MADE = 2_000_000  # tokens of the made text
_LOOKED_AT = 20  # steps whose batches tell the mean length and the share that is masked


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The batches and the model of all sides."""

    settings: BenchPretrainSettings
    machine: Machine
    config: EncoderConfig
    source: PretrainingSource
    text: str

    def flops(self) -> float:
        """Useful FLOP a token, by the lengths and masks of the first batches."""
        squares = tokens = masked = 0
        for index in range(min(_LOOKED_AT, self.source.steps(0))):
            for batch in self.source.step(0, index):
                lengths = batch.packed.boundaries.diff().long()
                squares += int((lengths**2).sum())
                tokens += batch.tokens
                masked += batch.counts()["mlm"]
        return pretraining_flops(self.config, length=squares / tokens, masked=masked / tokens)

    def sides(self, names: Sequence[str] = ()) -> list[Trainer]:
        """Every side that the settings ask for, or those named."""
        settings = self.settings
        made: list[Trainer] = []
        if not names or OURS in names:
            made.append(Ours(self.source, self.config, self.machine, seed=settings.seed))
        if settings.vs and (not names or settings.vs in names):
            whole = copy.copy(self.source)
            whole.micro_tokens = None  # one pass a step
            numbers = precision.resolve(settings.vs_precision, self.machine.device)
            from bertkit.bench.reference import Pretraining  # loads transformers (4 s), which bertkit alone does not need

            made.append(Pretraining(whole, self.config, self.machine.device, numbers, seed=settings.seed))
        return made


def bench_pretrain(settings: BenchPretrainSettings, console: Console) -> Outcome:
    """Measures steps of pretraining.

    Raises:
        BertkitError: What ``bertkit pretrain`` raises of the same text and sizes.
    """
    return bench_training(settings, console, prepare)


def prepare(settings: BenchPretrainSettings, console: Console, machine: Machine) -> Work:
    """The text read, and the model of the asked size."""
    size = settings.size or ("mini" if machine.on_cpu else "base")
    if settings.corpus:
        wordpiece = load_wordpiece(Path(str(settings.tokenizer.path)), cased=settings.tokenizer.cased)
        corpus = NamedCorpus.of(settings.corpus, CorpusSettings())
        corpus.must_agree(wordpiece, str(settings.tokenizer.path))
        store = read_text(CorpusSettings(), corpus, wordpiece, console, "Reading the text")
        words, text, pad = VocabularyFacts.of(wordpiece), ", ".join(settings.corpus), wordpiece.pad_id
        vocabulary = wordpiece.size
    else:
        store, words = made_text(_MADE, seed=settings.seed)
        text, pad, vocabulary = f"{store.tokens:,} made-up tokens", words.pad_id, VOCABULARY
    config = EncoderConfig.of_size(
        size,
        vocab_size=vocabulary,
        pad_token_id=pad,
        max_position_embeddings=max(512, settings.examples.max_length),
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
    )
    source = PretrainingSource(
        store,
        words,
        settings.examples,
        settings.masking,
        seed=settings.seed,
        batch_size=settings.batch_size or (32 if machine.on_cpu else 256),
        micro_tokens=machine.micro_tokens,
    )
    text = f"Text: {text} ({size}). Sequences of {settings.examples.max_length} at most, {source.batch_size} a step."
    return Work(settings=settings, machine=machine, config=config, source=source, text=text)
