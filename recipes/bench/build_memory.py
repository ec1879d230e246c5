"""Memory and disk of the build of a token store, from the text as it is to twenty times as much.

    python recipes/bench/build_memory.py                                    # 66 MB, 1.3 GB, and 1.3 GB of ever new words
    python recipes/bench/build_memory.py --slice-mb 5 --times 4             # a trial of half a minute

`--data` (default `$BERTKIT_DATA/data`) holds `corpora/enwiki-train.txt` and `vocab/bert-base-uncased-vocab.txt`; `--scratch`
(default the system's folder for temporary files) takes the texts that are made and their stores, one at a time: about twice the
largest text.

Three builds, each a process of its own with `--workers` more: the text; the text `--times` times, one behind the other; and the
same with a random word of ten letters, each time another, at the end of every line. While they run, the anonymous memory
(RssAnon) of all their processes is added up twenty times a second.

Prints one JSON line a build. Exit code 7: the highest peak is more than 15 % above the lowest, or a store takes more than 2.2
bytes a token.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from bertkit.bench.family import watch
from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.wordpiece import load_wordpiece

TEXTS = ("once", "repeated", "new words")
SPREAD, BYTES_A_TOKEN = 1.15, 2.2
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    """Builds each text and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BERTKIT_DATA", ".")) / "data")
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--slice-mb", type=float, help="only the first so many MB of the text")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=TEXTS)
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)  # what a fresh process is told
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    vocabulary = given.data / "vocab" / "bert-base-uncased-vocab.txt"
    if given.build:
        build(given.build, vocabulary, given.folder, given.workers)
        return
    results = [measure(text, given) for text in given.texts]
    peaks = [float(result["peak_mb"]) for result in results]
    met = max(peaks) <= SPREAD * min(peaks) and all(float(result["bytes_a_token"]) <= BYTES_A_TOKEN for result in results)
    print(json.dumps({"spread": round(max(peaks) / min(peaks), 3), "met": met}))
    sys.exit(0 if met else 7)


def build(text: Path, vocabulary: Path, folder: Path, workers: int) -> None:
    wordpiece = load_wordpiece(vocabulary, cased=False)
    store, report = build_store(open_corpus([text]), wordpiece, CorpusSettings(), folder=folder, workers=workers)
    arrays = sum(path.stat().st_size for path in folder.glob("*.bin"))
    print(json.dumps({"documents": report.documents, "lines": report.lines, "tokens": store.tokens, "disk": arrays}))


def measure(kind: str, given: argparse.Namespace) -> dict[str, float | str]:
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        text, folder = Path(name) / "text.txt", Path(name) / "store"
        write(kind, given, text)
        size = text.stat().st_size
        argv = [sys.executable, __file__, "--data", str(given.data), "--workers", str(given.workers)]
        found = watch([*argv, "--build", str(text), "--folder", str(folder)])
        built = json.loads(found.out)
    result: dict[str, float | str] = {
        "text": kind,
        "mb": round(size / 1e6, 1),
        "peak_mb": round(found.peak / 1e6, 1),
        "first_process_mb": round(found.first / 1e6, 1),
        "seconds": round(found.seconds, 1),
        "mb_a_second": round(size / 1e6 / found.seconds, 2),
        "tokens": built["tokens"],
        "bytes_a_token": round(built["disk"] / built["tokens"], 3),
    }
    print(json.dumps(result), flush=True)
    return result


def write(kind: str, given: argparse.Namespace, path: Path) -> None:
    """Makes the text of one build, line by line."""
    rng = random.Random(0)
    source = given.data / "corpora" / "enwiki-train.txt"
    most = None if given.slice_mb is None else int(given.slice_mb * 1e6)
    with path.open("wb") as out:
        for _ in range(1 if kind == "once" else given.times):
            read = 0
            with source.open("rb") as lines:
                for line in lines:
                    read += len(line)
                    if most is not None and read > most:
                        break
                    if kind == "new words" and line.strip():
                        line = line.rstrip(b"\r\n") + f" {''.join(rng.choices(LETTERS, k=10))}\n".encode()
                    out.write(line)
            out.write(b"\n")


if __name__ == "__main__":
    main()
