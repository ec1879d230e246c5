"""Text to tokens: bertkit's build of a token store beside what transformers' run_mlm does with the same file.

    python recipes/bench/corpus_build.py                     # both languages, three rounds
    python recipes/bench/corpus_build.py --languages en --slice-mb 5 --rounds 1    # a trial

`--data` (default `$BERTKIT_DATA/data`) holds `corpora/enwiki-train.txt`, `corpora/zhwiki-train.txt`, and in `vocab` google's
vocabularies of both. The two sides take turns, each time in a fresh process with empty caches. Times begin when libraries and
tokenizer are loaded and end when everything is on disk. bertkit reads, cuts sentences, encodes, counts duplicates and writes;
its workers start within its time. The other side is run_mlm.py's preprocessing: `datasets` reads the file, a fast
`BertTokenizerFast` encodes it line by line under `map` with two processes, and a second `map` groups the ids to 512.

Prints one JSON line a run (seconds by the clock, and CPU seconds of all its processes) and one a language: medians in MB/s, their
ratio, the least and the greatest ratio of a round, and the median CPU seconds, which say more where the machine has other work.
Exit code 7: a ratio is below the goal (6 for English, 1 for Chinese).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

LANGUAGES = {  # text, vocabulary, goal
    "en": ("enwiki-train.txt", "bert-base-uncased-vocab.txt", 6.0),
    "zh": ("zhwiki-train.txt", "bert-base-chinese-vocab.txt", 1.0),
}
SIDES = ("bertkit", "transformers")
GROUP = 512


def main() -> None:
    """Runs both sides in turn and prints what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BERTKIT_DATA", ".")) / "data")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=list(LANGUAGES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--slice-mb", type=float, help="only the first so many MB of the text")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)  # what a fresh process is told
    parser.add_argument("--text", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--vocab", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        side = build if arguments.side == "bertkit" else preprocess
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(side(arguments.text, arguments.vocab, Path(folder), arguments.processes)))
        return
    met = [compare(language, arguments) for language in arguments.languages]
    sys.exit(0 if all(met) else 7)


def compare(language: str, arguments: argparse.Namespace) -> bool:
    """The rounds of one language; does the ratio of the medians reach the goal?"""
    from bertkit.training.precision import cpu_kind  # not above: it loads torch, which no side needs

    text, vocab, goal = LANGUAGES[language]
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    work: dict[str, list[float]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / text
        data = (arguments.data / "corpora" / text).read_bytes()
        data = data[: int(arguments.slice_mb * 1e6)] if arguments.slice_mb else data
        file.write_bytes(data[: data.rfind(b"\n") + 1])
        megabytes = file.stat().st_size / 1e6
        for number in range(arguments.rounds):
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                command = [sys.executable, __file__, "--side", side, "--text", str(file)]
                command += ["--vocab", str(arguments.data / "vocab" / vocab), "--processes", str(arguments.processes)]
                found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
                rates[side].append(megabytes / found["seconds"])
                work[side].append(found["cpu_seconds"])
                print(
                    json.dumps({"language": language, "side": side, **found, "mb_per_s": round(rates[side][-1], 2)}), flush=True
                )
    ratios = [ours / theirs for ours, theirs in zip(*rates.values(), strict=True)]
    medians = {side: statistics.median(some) for side, some in rates.items()}
    ratio = medians["bertkit"] / medians["transformers"]
    facts = {
        "language": language,
        "mb": round(megabytes, 1),
        "processes": arguments.processes,
        **{f"{side}_mb_per_s": round(rate, 2) for side, rate in medians.items()},
        "ratio": round(ratio, 2),
        "ratio_least": round(min(ratios), 2),
        "ratio_greatest": round(max(ratios), 2),
        **{f"{side}_cpu_seconds": round(statistics.median(some), 2) for side, some in work.items()},
        "goal": goal,
        "cpu": cpu_kind(),
    }
    print(json.dumps(facts), flush=True)
    return ratio >= goal


class Clock:
    """Seconds from its making on: by the clock, and of CPUs, of this process and of those that it started and that ended."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), self._cpu()

    def read(self) -> dict[str, float]:
        return {"seconds": round(time.perf_counter() - self._start[0], 3), "cpu_seconds": round(self._cpu() - self._start[1], 3)}

    @staticmethod
    def _cpu() -> float:
        return sum(os.times()[:4])


def build(text: Path, vocab: Path, folder: Path, processes: int) -> dict[str, Any]:
    """bertkit's side."""
    from bertkit.corpus.build import build_store
    from bertkit.corpus.documents import CorpusSettings, open_corpus
    from bertkit.corpus.wordpiece import load_wordpiece

    wordpiece = load_wordpiece(vocab, cased=False)
    settings, clock = CorpusSettings(), Clock()
    store, _ = build_store(open_corpus([text], settings), wordpiece, settings, cache=folder, workers=processes)
    return {**clock.read(), "tokens": len(store.ids)}


def preprocess(text: Path, vocab: Path, folder: Path, processes: int) -> dict[str, Any]:
    """What run_mlm.py does before it trains, without ``--line_by_line``."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.BertTokenizerFast(str(vocab))

    def tokenize(examples: Any) -> Any:
        return tokenizer(examples["text"], return_special_tokens_mask=True)

    def group(examples: Any) -> dict[str, list[Any]]:
        joined = {key: list(chain(*examples[key])) for key in examples}
        length = len(joined["input_ids"]) // GROUP * GROUP
        return {key: [values[i : i + GROUP] for i in range(0, length, GROUP)] for key, values in joined.items()}

    clock = Clock()
    raw = datasets.load_dataset("text", data_files={"train": str(text)}, cache_dir=str(folder))["train"]
    tokenized = raw.map(tokenize, batched=True, num_proc=processes, remove_columns=["text"])
    grouped = tokenized.map(group, batched=True, num_proc=processes)
    found = clock.read()
    versions = {library.__name__: library.__version__ for library in (transformers, datasets)}
    return {**found, "tokens": len(grouped) * GROUP, **versions}


if __name__ == "__main__":
    main()
