"""Examples of pre-training: how fast one process makes them, what drawing an epoch takes, and how much memory.

    python recipes/bench/examples.py --corpus enwiki-train.txt --vocab bert-base-uncased-vocab.txt --cache /tmp/stores

Speed: masked, packed batches of 256 pairs out of a token store, beside transformers' DataCollatorForLanguageModeling over a
map-style set of `datasets` that holds the same examples ready-made (special-token masks too), in torch's DataLoader without
workers. The sides take turns on one thread; their CPU seconds are counted, and real tokens alone. Base's training speed is
measured here on all cores, or given.
Planning: CPU seconds to draw an epoch and put it on disk, as a share of the time that mini takes to train it at `--mini-speed`.
Memory: the peak of anonymous memory (RssAnon) of a process that draws an epoch and makes all its batches, from the store and
from one that repeats it `--times` times, or that of the text `--larger`.

Prints one JSON line a figure; exit code 7 where one misses its goal: speed at least 5 times the other side's and 100 times
base's, planning below 2 %, memory within 15 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.batches.examples import ExampleSettings, draw_examples
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.plan import keep_plan
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.bench.alternate import Round, alternate, ratios, spread
from bertkit.bench.memory import peak_of
from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.corpus.writer import StoreWriter

BATCH = 256  # sequences
READY = 16  # batches of ready-made examples, shuffled again and again
_CHUNK = 1 << 22  # tokens copied at once
failed = False


def report(figure: str, ok: bool = True, **values: Any) -> None:
    """Prints one figure; one that misses its goal is remembered."""
    global failed
    failed |= not ok
    print(json.dumps({"figure": figure, "ok": ok, **values}), flush=True)


class Ours:
    """Batches of the source, one after another."""

    name = "bertkit"

    def __init__(self, source: PretrainingSource) -> None:
        self.source, self.numbers = source, cycle(range(source.steps(0)))

    def run(self, seconds: float) -> Round:
        """Batches for so long."""
        tokens, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds:
            tokens += sum(batch.tokens for batch in self.source.step(0, next(self.numbers)))
        return Round(units=tokens, seconds=spent, parts={})


class Theirs:
    """The same sequences, ready-made, through transformers' collator."""

    name = "transformers"

    def __init__(self, source: PretrainingSource, vocab: Path, cased: bool) -> None:
        from datasets import Dataset
        from transformers import BertTokenizerFast, DataCollatorForLanguageModeling

        facts, columns = source.facts, ("input_ids", "token_type_ids", "special_tokens_mask", "next_sentence_label")
        made: dict[str, list[Any]] = {name: [] for name in columns}
        for row in source.plan(0).examples[: READY * BATCH]:
            a, b = (ids.tolist() for ids in source.tokens_of(row))
            made["input_ids"].append([facts.cls_id, *a, facts.sep_id, *b, facts.sep_id])
            made["token_type_ids"].append([0] * (len(a) + 2) + [1] * (len(b) + 1))
            made["special_tokens_mask"].append([1, *[0] * len(a), 1, *[0] * len(b), 1])
            made["next_sentence_label"].append(int(row["label"]))
        collator = DataCollatorForLanguageModeling(BertTokenizerFast(str(vocab), do_lower_case=not cased), mlm_probability=0.15)
        self.batches = torch.utils.data.DataLoader(Dataset.from_dict(made), batch_size=BATCH, collate_fn=collator, shuffle=True)
        self.feed = self._endless()

    def _endless(self) -> Any:
        while True:
            yield from self.batches

    def run(self, seconds: float) -> Round:
        """Batches for so long."""
        tokens, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds:
            tokens += int(next(self.feed)["attention_mask"].sum())
        return Round(units=tokens, seconds=spent, parts={})


def base_speed(source: PretrainingSource, vocabulary: int, seconds: float) -> float:
    """Tokens a second that base trains on, on all cores."""
    from bertkit.bench.pretraining import Ours as Training
    from bertkit.jobs.start import Machine
    from bertkit.model.config import EncoderConfig
    from bertkit.training.device import DeviceSettings

    side = Training(source, EncoderConfig.of_size("base", vocab_size=vocabulary), Machine.of(DeviceSettings()))
    try:
        side.run(seconds / 4)
        return side.run(seconds).rate
    finally:
        side.close()


def compare(source: PretrainingSource, given: argparse.Namespace, base: float) -> None:
    """Our speed, and theirs."""
    length = source.examples.max_length
    sides = (Ours(source), Theirs(source, given.vocab, given.cased))
    rounds = alternate(sides, rounds=given.rounds, seconds=given.seconds)
    for side in sides:
        report("tokens per CPU second", length=length, side=side.name, **spread([round(each.rate) for each in rounds[side.name]]))
    ratio = {name: round(value, 2) for name, value in ratios(rounds["bertkit"], rounds["transformers"]).items()}
    report("times transformers", ratio["median"] >= 5, length=length, **ratio)
    times = spread([each.rate for each in rounds["bertkit"]])["median"] / base
    report("times base's training", times >= 100, length=length, times=round(times), base_tokens_per_second=round(base))


def plan(store: TokenStore, facts: VocabularyFacts, length: int, mini: float) -> None:
    """What drawing an epoch takes."""
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        keep_plan(draw_examples(store, facts, ExampleSettings(max_length=length), seed=1, epoch=0), Path(folder), "key", 0)
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
    share = cpu / (store.tokens / mini)
    figures = {"cpu_seconds": round(cpu, 2), "seconds": round(seconds, 2), "share_of_mini": round(share, 5)}
    report("planning an epoch", share < 0.02, length=length, tokens=store.tokens, **figures)


def repeated(store: TokenStore, times: int, folder: Path) -> TokenStore:
    """A store that holds another ``times`` times."""
    with StoreWriter(folder, store.vocab_size) as writer:
        for _ in range(times):
            shift = writer.tokens
            for first in range(0, store.tokens, _CHUNK):
                last = min(first + _CHUNK, store.tokens)
                ends = np.zeros(last - first, dtype=bool)
                ends[store.sentence_ends_between(first, last) - first - 1] = True
                low, high = np.searchsorted(store.document_ends, [first, last], side="right")
                documents = np.asarray(store.document_ends[low:high]) + shift
                writer.add(store.ids[first:last], ends, documents, store.document_hashes[low:high])
        counts = {name: count * times for name, count in store.counts.items()}
        writer.finish(fingerprint=f"{store.fingerprint} {times} times", tokenizer=store.tokenizer, counts=counts)
    return TokenStore.open(folder)


def stream(store: Path, facts: VocabularyFacts, length: int) -> None:
    """Draws an epoch and makes all its batches."""
    with tempfile.TemporaryDirectory(dir=store.parent) as plans:
        source = PretrainingSource(
            TokenStore.open(store),
            facts,
            ExampleSettings(max_length=length),
            MaskingSettings(),
            seed=1,
            batch_size=BATCH,
            plans=Path(plans),
        )
        for index in range(source.steps(0)):
            source.step(0, index)


def memory(store: TokenStore, larger: TokenStore, facts: VocabularyFacts, length: int) -> None:
    """The peak of a stream, and of a longer one."""
    one, other = (peak_of(stream, place.folder, facts, length) for place in (store, larger))
    sizes = {"tokens": store.tokens, "mb": round(one / 1e6), "larger_tokens": larger.tokens, "larger_mb": round(other / 1e6)}
    report("peak anonymous memory", other < 1.15 * one, length=length, **sizes, ratio=round(other / one, 3))


def arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of a side in a round")
    parser.add_argument("--base-speed", type=float, help="tokens a second that base trains on (default: measured)")
    parser.add_argument("--mini-speed", type=float, default=10_000, help="tokens a second that mini trains on")
    parser.add_argument("--times", type=int, default=20, help="how often the larger store holds the text; 0: no memory")
    parser.add_argument("--larger", type=Path, nargs="+", help="a text to compare memory with instead")
    return parser.parse_args()


def main() -> int:
    """Measures everything."""
    given = arguments()
    wordpiece: WordPiece = load_wordpiece(given.vocab, cased=given.cased)
    facts = VocabularyFacts.of(wordpiece)

    def build(texts: list[Path]) -> TokenStore:
        return build_store(open_corpus(texts), wordpiece, CorpusSettings(), cache=given.cache)[0]

    store = build(given.corpus)

    def source(length: int, batch: int = BATCH) -> PretrainingSource:
        settings = ExampleSettings(max_length=length)
        return PretrainingSource(store, facts, settings, MaskingSettings(), seed=1, batch_size=batch)

    base = given.base_speed or base_speed(source(128, 16), wordpiece.size, 40.0)
    torch.set_num_threads(1)
    for length in given.lengths:
        plan(store, facts, length, given.mini_speed)
        compare(source(length), given, base)
        if given.larger:
            memory(store, build(given.larger), facts, length)
        elif given.times:
            with tempfile.TemporaryDirectory(dir=given.cache) as folder:
                memory(store, repeated(store, given.times, Path(folder) / "store"), facts, length)
    return 7 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
