"""Which peak learning rate is best for a size: the same steps of `bertkit pretrain` at several rates, by validation loss.

    python recipes/bench/rates.py --size mini --corpus enwiki-train.txt --valid enwiki-valid.txt --tokenizer vocab.txt \
        --rates 5e-4,1e-3,2e-3 --steps 200 --output rates-mini

Equal steps and not equal minutes, so that a busy machine does not decide. Prints one JSON line a rate; finished runs are not run
again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Runs the rates one after another and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--valid", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--rates", default="5e-4,1e-3,2e-3")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--output", type=Path, default=Path("rates"))
    arguments = parser.parse_args()
    found = []
    for rate in arguments.rates.split(","):
        folder = arguments.output / f"{arguments.size}-{arguments.batch_size}-{rate}"
        command = [sys.executable, "-m", "bertkit", "pretrain", "--json", "--output", str(folder)]
        for name in ("size", "corpus", "valid", "tokenizer", "steps", "batch_size"):
            command += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
        done = subprocess.run([*command, "--lr", rate], stdout=subprocess.PIPE, text=True, check=True)
        metrics = json.loads(done.stdout)["metrics"]
        names = ("mlm_loss", "nsp_loss", "unigram_loss", "tokens", "train_seconds")
        row = {"rate": rate, **{name: metrics[name] for name in names}}
        print(json.dumps(row), flush=True)
        found.append(row)
    best = min(found, key=lambda row: row["mlm_loss"])
    print(json.dumps({"best": best["rate"], "size": arguments.size, "steps": arguments.steps}))


if __name__ == "__main__":
    main()
