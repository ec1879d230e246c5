"""How fast the readers give the lines of a text in each format, and how much memory that takes.

    python recipes/bench/reading.py --text enwiki-train.txt

Writes the text in every format into a temporary folder and reads each in a process of its own. Prints one JSON line a format:
megabytes of text a second by the clock and by the processor (on a busy machine the latter says more), best of three, and the
peak of anonymous memory above that of the bare imports.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_lines


def anonymous() -> int:
    """Bytes of anonymous memory of this process (Linux)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1])


def measure(path: Path) -> dict[str, int | str]:
    """Reads one file three times."""
    settings, clock, work, peak, before = CorpusSettings(), float("inf"), float("inf"), 0, anonymous()
    for _ in range(3):
        report, started, worked = ReadReport(), time.perf_counter(), time.process_time()
        for index, _line in enumerate(read_lines(open_corpus([path]), settings, report)):
            if not index % 5000:
                peak = max(peak, anonymous())
        clock, work = min(clock, time.perf_counter() - started), min(work, time.process_time() - worked)
    rates = {"mb_per_second": round(report.bytes / clock / 1e6), "mb_per_cpu_second": round(report.bytes / work / 1e6)}
    return {"file": path.name, **rates, "anonymous_mb": round((peak - before) / 1e6)}


def write(text: Path, folder: Path) -> list[Path]:
    """The text in every format."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = text.read_bytes()
    documents = data.decode().split("\n\n")
    records = "".join(json.dumps({"text": document}, ensure_ascii=False) + "\n" for document in documents).encode()
    articles = "".join(f'<doc id="{n}" title="">\n{document}\n</doc>\n' for n, document in enumerate(documents)).encode()
    contents = {
        "a.txt": data,
        "a.txt.gz": gzip.compress(data, 6),
        "a.txt.zst": pa.compress(data, "zstd", asbytes=True),
        "wiki_00": articles,
        "a.jsonl": records,
        "a.jsonl.zst": pa.compress(records, "zstd", asbytes=True),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pq.write_table(pa.table({"text": documents}), folder / "a.parquet", row_group_size=len(documents))
    return [*(folder / name for name in contents), folder / "a.parquet"]


def main() -> None:
    """Reads every format and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--one", action="store_true", help="read this file as it is, in this process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.text)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in write(given.text, Path(folder)):
            subprocess.run([sys.executable, __file__, "--one", "--text", str(path)], check=True)


if __name__ == "__main__":
    main()
