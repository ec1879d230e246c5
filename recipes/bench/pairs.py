"""Checks the examples of pre-training on a corpus at full size: one JSON line a check, exit 7 where one fails.

Command:  python recipes/bench/pairs.py --corpus enwiki-train.txt --vocab bert-base-uncased-vocab.txt --cache /tmp/stores
Hardware: two cores of a CPU; about 1 GB of memory.
Time:     the store 2 min (once), then about 30 s for 100 000 pairs at 128 and at 512 tokens (66 MB of text).
Expected: every line "ok": true. Chance alone puts a check out of its bounds about once in 100 seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import SENTENCE, Text
from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece

COLUMNS = ("a", "b", "a_length", "b_length", "label")
failed = False


def report(check: str, length: int, ok: bool, **figures: Any) -> None:
    global failed
    failed |= not ok
    rounded = {name: round(value, 5) if isinstance(value, float) else value for name, value in figures.items()}
    print(json.dumps({"check": check, "length": length, "ok": bool(ok), **rounded}), flush=True)


def draw(source: PretrainingSource, pairs: int) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """At least ``pairs`` examples of whole epochs as int64 columns, each one's place in its batch, and those of epoch 0."""
    columns: list[list[np.ndarray]] = [[] for _ in COLUMNS]
    places: list[np.ndarray] = []
    drawn = 0
    while drawn < pairs:
        examples = source.plan(len(places)).examples
        for column, name in zip(columns, COLUMNS, strict=True):
            column.append(examples[name].astype(np.int64))
        places.append(np.arange(len(examples)) % source.batch_size)
        drawn += len(examples)
    found = {name: np.concatenate(column) for name, column in zip(COLUMNS, columns, strict=True)}
    return found, np.concatenate(places), len(places[0])


def check_pairs(source: PretrainingSource, text: Text, pairs: int) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    length = source.examples.max_length
    start = time.process_time()
    first = len(source.plan(0))
    report("plan", length, True, examples=first, cpu_seconds=time.process_time() - start)
    e, place, first = draw(source, pairs)
    a, b, n, m, label = (e[name] for name in ("a", "b", "a_length", "b_length", "label"))

    true = label == 0
    sigma = 0.5 / len(label) ** 0.5
    report("balance", length, abs(true.mean() - 0.5) < 3 * sigma, share=float(true.mean()), sigma=sigma, pairs=len(label))

    ordered = source.examples.objective == "mlm+sop"
    other = text.document(a) != text.document(b)
    whole = (text.document(b) == text.document(b + m - 1)) & (text.document(a) == text.document(a + n - 1))
    tails = ~other & (a == b + m) if ordered else other
    good = whole.all() and (tails == ~true).all() and (b == a + n)[true].all() and (n + m <= length - 3).all()
    report("labels", length, bool(good), wrong=int((tails == true).sum()))

    depth = np.zeros(text.tokens + 1, dtype=np.int64)
    for begin, size, rows in ((a, n, np.ones(first, dtype=bool)), (b, m, true[:first] | ordered)):
        np.add.at(depth, begin[:first][rows], 1)
        np.add.at(depth, (begin + size)[:first][rows], -1)
    depth = np.cumsum(depth[:-1])
    usable = source.store.document_ends[text.usable()]
    counted = text.usable()[text.document(np.arange(text.tokens))]
    missed = int((depth[counted] == 0).sum())
    report("coverage", length, missed == 0, uncovered=missed, times=float(depth.mean()), documents=len(usable))

    borders = [text.kind(edge) == SENTENCE for edge in (a, a + n, b, b + m)]
    seen = np.stack([n, m, n + m, place, *borders], axis=1).astype(float)[:pairs]
    label = label[:pairs]
    model = HistGradientBoostingClassifier(random_state=0).fit(seen[::2], label[::2])
    area = float(roc_auc_score(label[1::2], model.predict_proba(seen[1::2])[:, 1]))
    ones = int(label[1::2].sum())
    zeros = len(label[1::2]) - ones
    sigma = ((ones + zeros + 1) / (12 * ones * zeros)) ** 0.5
    fair = ordered or abs(area - 0.5) < 4 * sigma  # an order cannot be hidden: a sentence's first part ends inside it
    report("given away", length, fair, auc=area, sigmas=(area - 0.5) / sigma, pairs=len(label))


def check_masks(source: PretrainingSource, wordpiece: WordPiece, steps: int) -> None:
    length, special = source.examples.max_length, np.flatnonzero(wordpiece.special)
    got, wanted, variance, tokens, hidden = 0, 0.0, 0.0, 0, True
    kinds = np.zeros(3)
    start = time.process_time()
    batches = [batch for index in range(min(steps, source.steps(0))) for batch in source.step(0, index)]
    seconds = time.process_time() - start
    for batch in batches:
        count = np.diff(batch.packed.boundaries.numpy()) - 3
        fraction = np.where(count < 7, 0, source.masking.probability * count % 1)
        got += batch.counts()["mlm"]
        wanted += float(np.maximum(1, source.masking.probability * count).sum())
        variance += float((fraction * (1 - fraction)).sum())
        tokens += batch.tokens
        shown = batch.packed.input_ids[batch.masked_positions].numpy()
        labels = batch.masked_labels.numpy()
        kinds += [
            (shown == wordpiece.mask_id).sum(),
            ((shown != wordpiece.mask_id) & (shown != labels)).sum(),
            (shown == labels).sum(),
        ]
        hidden &= not np.isin(labels, special[special != wordpiece.unk_id]).any()
    sigma = variance**0.5
    report("mask count", length, abs(got - wanted) < 3 * sigma, masked=got, expected=wanted, sigma=sigma)
    hit = 1 / len(wordpiece.replaceable)
    shares = np.array([0.8, 0.1 * (1 - hit), 0.1 + 0.1 * hit])
    bounds = 3 * np.sqrt(shares * (1 - shares) / got)
    report(
        "mask kinds", length, bool((abs(kinds / got - shares) < bounds).all() and hidden), shares=(kinds / got).round(4).tolist()
    )
    report("speed", length, True, tokens_per_cpu_second=round(tokens / seconds), tokens=tokens)


def check_leak(store: TokenStore, wordpiece: WordPiece, examples: ExampleSettings, seed: int) -> None:
    """With every chosen token masked, what was chosen is to be had from the labels alone."""
    masking = MaskingSettings(mask_share=1.0, random_share=0.0)
    (batch,) = PretrainingSource(store, wordpiece, examples, masking, seed=seed, batch_size=256).step(0, 0)
    covered = bool((batch.packed.input_ids[batch.masked_positions] == wordpiece.mask_id).all())
    tensors = [batch.packed.input_ids, batch.packed.token_type_ids, batch.packed.position_ids, batch.packed.boundaries]
    exact = all(tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size() for tensor in tensors)
    report("no leak", examples.max_length, covered and exact)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--objective", choices=("mlm+nsp", "mlm+sop"), default="mlm+nsp")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100, help="steps of 256 sequences whose masks are counted")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wordpiece = load_wordpiece(given.vocab, cased=given.cased)
    store, _ = build_store(open_corpus(given.corpus), wordpiece, CorpusSettings(), cache=given.cache)
    for length in given.lengths:
        examples = ExampleSettings(max_length=length, objective=given.objective)
        source = PretrainingSource(store, wordpiece, examples, MaskingSettings(), seed=given.seed, batch_size=256)
        check_pairs(source, Text.of(store, wordpiece.continues, examples.room), given.pairs)
        check_masks(source, wordpiece, given.steps)
        check_leak(store, wordpiece, examples, given.seed)
    return 7 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
