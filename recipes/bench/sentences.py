"""Sentences: wrong ones of the hand-checked boundaries, and MB/s, of bertkit and of the libraries that are installed.

    python recipes/bench/sentences.py --corpora data/corpora            # enwiki-train.txt and zhwiki-train.txt lie there

Compared are sentencex, nupunkt and pysbd, each where `import` finds it. One JSON line a splitter and language. Exit code 7
where bertkit's own is wrong at more than 2 % of the boundaries of a language's check half, or of its development half.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bertkit.corpus.sentences import split_sentences

GOLD = Path(__file__).parents[2] / "tests/corpus/sentence_starts.json"
SLOW = {"pysbd": 0.02}  # share of --mb that is enough to time these
Splitter = Callable[[str], list[str]]


def libraries(language: str) -> Iterator[tuple[str, Splitter]]:
    yield "bertkit", split_sentences
    for name in ("sentencex", "nupunkt", "pysbd"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        label = f"{name} {importlib.metadata.version(name)}"
        if name == "sentencex":
            yield label, lambda text, m=module: list(m.segment(language, text))
        elif name == "nupunkt":
            yield label, lambda text, m=module: list(m.sent_tokenize(text))
        else:
            yield label, module.Segmenter(language=language, clean=False).segment


def starts(text: str, sentences: list[str]) -> set[int]:
    """Characters before each sentence but the first; a sentence that is no slice of the text counts as not cut."""
    found, at = set(), 0
    for sentence in filter(None, map(str.strip, sentences)):
        begin = text.find(sentence, at)
        if begin >= 0:
            found.add(begin)
            at = begin + len(sentence)
    return found - {len(text) - len(text.lstrip())}


def wrong(split: Splitter, corpus: Path, paragraphs: list[list[object]]) -> tuple[int, int, int]:
    """(boundaries set that are none, boundaries missed, boundaries)."""
    false = missed = total = 0
    with corpus.open("rb") as file:
        for offset, length, _, gold in paragraphs:
            file.seek(offset)
            text = file.read(length).decode()
            cut = starts(text, split(text))
            false, missed, total = false + len(cut - set(gold)), missed + len(set(gold) - cut), total + len(gold)
    return false, missed, total


def megabytes_a_second(split: Splitter, corpus: Path, size: int) -> float:
    with corpus.open("rb") as file:
        data = file.read(size)
    lines = [line for line in data[: data.rfind(b"\n")].decode().split("\n") if line.strip()]
    split(lines[0])
    started = time.process_time()
    for line in lines:
        split(line)
    return len(data) / 1e6 / (time.process_time() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of enwiki-train.txt and zhwiki-train.txt")
    parser.add_argument("--mb", type=float, default=10.0, help="MB of each text that are timed")
    arguments = parser.parse_args()
    gold, good = json.loads(GOLD.read_text(encoding="utf-8")), True
    for language, wiki in (("en", "enwiki"), ("zh", "zhwiki")):
        corpus = arguments.corpora / f"{wiki}-train.txt"
        for name, split in libraries(language):
            line: dict[str, object] = {"text": wiki, "splitter": name}
            for half in ("development", "check"):
                false, missed, total = wrong(split, corpus, gold[wiki][half])
                line[half] = {"boundaries": total, "false": false, "missed": missed, "wrong": round((false + missed) / total, 4)}
                good &= name != "bertkit" or false + missed <= 0.02 * total
            size = int(arguments.mb * 1e6 * SLOW.get(name.split()[0], 1.0))
            line["mb_a_second"] = round(megabytes_a_second(split, corpus, size), 1)
            print(json.dumps(line), flush=True)
    return 0 if good else 7


if __name__ == "__main__":
    sys.exit(main())
