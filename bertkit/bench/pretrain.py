"""``bertkit bench pretrain``: tokens a second, share of the ceiling, memory and time by part; beside transformers where asked."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.bench.alternate import Round, alternate, parts, ratios, spread
from bertkit.bench.machine import machine_facts, product_rate
from bertkit.bench.made_text import VOCABULARY, made_text
from bertkit.bench.memory import peak_of
from bertkit.bench.pretraining import Ours
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
from bertkit.training.files import readable

if TYPE_CHECKING:
    from bertkit.bench.reference import Pretraining

_MADE = 2_000_000  # tokens of the made text
_FEW = 3  # steps that show the peak of memory
_LOOKED_AT = 20  # steps whose batches tell the mean length and the share that is masked


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What both sides do."""

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


def bench_pretrain(settings: BenchPretrainSettings, console: Console) -> Outcome:
    """Measures steps of pretraining.

    Raises:
        BertkitError: What ``bertkit pretrain`` raises of the same text and sizes.
    """
    machine = Machine.of(settings.device)
    facts = machine_facts(machine.device)
    console.say(f"{facts.name}, {facts.threads} threads, torch {facts.torch}, {machine.precision}.")
    work = _work(settings, console, machine)
    console.say(f"Text: {work.text}. Sequences of {settings.examples.max_length} at most, {work.source.batch_size} a step.")
    rounds = _rounds(settings, console, machine, work)
    # Measured last: a machine that has been working is the one whose ceiling it is.
    ceiling = product_rate(machine.device, precision.resolve(settings.device.precision, machine.device))
    figures = _figures(settings, rounds, ceiling, work.flops())
    if settings.memory:
        console.say("Measuring memory …")
        figures["memory_bytes"] = {name: peak_of(_few_steps, settings, name) for name in rounds}
    _show(console, figures)
    extra = {"machine": facts.as_dict(), "precision": machine.precision, "bench": figures}
    return Outcome(metrics={"tokens_per_second": figures["rates"]["bertkit"]["median"]}, extra=extra)


def _work(settings: BenchPretrainSettings, console: Console, machine: Machine) -> Work:
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
    return Work(config=config, source=source, text=f"{text} ({size})")


def _sides(settings: BenchPretrainSettings, machine: Machine, work: Work, names: Sequence[str]) -> list[Ours | Pretraining]:
    made: list[Ours | Pretraining] = []
    if "bertkit" in names:
        made.append(Ours(work.source, work.config, machine, seed=settings.seed))
    if "transformers" in names:
        whole = copy.copy(work.source)
        whole.micro_tokens = None  # one pass a step
        numbers = precision.resolve(settings.vs_precision, machine.device)
        from bertkit.bench.reference import Pretraining  # loads transformers (4 s), which bertkit alone does not need

        made.append(Pretraining(whole, work.config, machine.device, numbers, seed=settings.seed))
    return made


def _rounds(settings: BenchPretrainSettings, console: Console, machine: Machine, work: Work) -> dict[str, list[Round]]:
    sides = _sides(settings, machine, work, ["bertkit", *([settings.vs] if settings.vs else [])])
    try:
        with console.progress("Rounds", settings.rounds, safe=True) as update:
            return alternate(sides, rounds=settings.rounds, seconds=settings.seconds, done=lambda done: update(done))
    finally:
        for side in sides:
            side.close()


def _few_steps(settings: BenchPretrainSettings, name: str) -> None:
    machine = Machine.of(settings.device)
    work = _work(settings, Console(quiet=True), machine)
    (side,) = _sides(settings, machine, work, [name])
    for _ in range(_FEW):
        side.run(0.0)
    side.close()


def _figures(
    settings: BenchPretrainSettings, rounds: Mapping[str, Sequence[Round]], ceiling: float, flops: float
) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "rates": {name: spread([each.rate for each in done]) for name, done in rounds.items()},
        "flops_per_token": flops,
        "ceiling_flops": ceiling,
        "parts": {name: parts(done) for name, done in rounds.items()},
    }
    figures["share_of_ceiling"] = figures["rates"]["bertkit"]["median"] * flops / ceiling
    if settings.vs is not None:
        figures["ratio"] = ratios(rounds["bertkit"], rounds[settings.vs])
        figures["vs_precision"] = settings.vs_precision
    return figures


def _show(console: Console, figures: Mapping[str, Any]) -> None:
    for name, rate in figures["rates"].items():
        console.result(f"{name:<14}{rate['median']:>9,.0f} tokens/s  ({rate['low']:,.0f} to {rate['high']:,.0f})")
        shares = "  ".join(f"{part} {share:.1%}" for part, share in figures["parts"][name].items())
        console.result(f"  {shares}")
        if memory := figures.get("memory_bytes", {}).get(name):
            console.result(f"  {readable(memory)} at the peak")
    if ratio := figures.get("ratio"):
        console.result(f"ratio         {ratio['median']:>9.2f}           ({ratio['low']:.2f} to {ratio['high']:.2f})")
    console.result(
        f"{figures['share_of_ceiling']:.0%} of the {figures['ceiling_flops'] / 1e9:,.0f} GFLOP/s of a large matrix product "
        f"here ({figures['flops_per_token'] / 1e6:,.1f} MFLOP a token)"
    )
