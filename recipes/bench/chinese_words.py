"""Chinese words: MB/s of a word list's segmentation, and how far its words are jieba's, where jieba or rjieba is installed.

    python recipes/bench/chinese_words.py --corpus zhwiki-train.txt --words zh-words-jieba-top60k.txt

One JSON line a segmenter: MB of text a second of processor time (one process), characters a word, and the F1 of its words
against jieba's with its whole dictionary (rjieba's, where jieba is not there).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.chinese import LIBRARIES, Segmenter, segmenter_of
from bertkit.errors import MissingError

Bools = NDArray[np.bool_]


def segmenters(words: str) -> dict[str, Segmenter]:
    found = {}
    for name in (words, *LIBRARIES):
        try:
            segmenter = segmenter_of(name)
        except MissingError as error:
            print(f"{name} is left out: {error.message}", file=sys.stderr)
            continue
        assert segmenter is not None
        found["list" if name == words else segmenter.fingerprint.rsplit(" ", 1)[0]] = segmenter
    return found


def spans(begins: Bools) -> set[tuple[int, int]]:
    starts = np.flatnonzero(begins)
    return set(zip(starts.tolist(), np.append(starts[1:], len(begins)).tolist(), strict=True))


def f1(begins: Bools, reference: Bools) -> float:
    one, two = spans(begins), spans(reference)
    return 2 * len(one & two) / (len(one) + len(two))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a Chinese text")
    parser.add_argument("--words", required=True, help="a list of words")
    parser.add_argument("--mb", type=float, default=3.0, help="MB of the text")
    given = parser.parse_args()
    with given.corpus.open("rb") as file:
        text = file.read(int(given.mb * 1e6)).decode("utf-8", "ignore")
    results, figures = {}, {}
    for name, segmenter in segmenters(given.words).items():
        segmenter.begins(text[:1000])  # jieba reads its dictionary when it is first used
        start = time.process_time()
        results[name] = segmenter.begins(text)
        seconds = time.process_time() - start
        begins = results[name]
        figures[name] = {
            "mb_per_second": round(len(text.encode()) / 1e6 / seconds, 2),
            "characters_per_word": round(len(begins) / int(begins.sum()), 3),
        }
    libraries = [name for name in results if name != "list"]
    for name, line in figures.items():
        compared = {"f1_against": libraries[0], "f1": round(f1(results[name], results[libraries[0]]), 4)} if libraries else {}
        print(json.dumps({"segmenter": name, **line, **compared}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
