"""All of GLUE as tiny files in the published forms, and a model for each task, written as a finished run."""

from __future__ import annotations

import json
from pathlib import Path

from job_tests import MakeModel

PAIRS = {
    "MRPC": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\ta {n}\tb .", "0\t7\t8\tc {n}\td ."),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "{n}\t1\t2\ta {n}\tb .\t1", "{n}\t1\t2\tc {n}\td .\t0"),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "{n}\tg\tf\ty\t0\ts\ts\ta {n}\tb .\t{n}.500", "{n}\tg\tf\ty\t0\ts\ts\tc {n}\td .\t{n}.000",
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "{n}\ta {n}\tb .\tentailment", "{n}\tc {n}\td .\tnot_entailment"),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "{n}\ta {n}\tb .\tentailment", "{n}\tc {n}\td .\tnot_entailment"),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "{n}\ta {n}\tb .\t1", "{n}\tc {n}\td .\t0"),
    "SST-2": ("sentence\tlabel", "good {n}\t1", "bad {n}\t0"),
}  # fmt: skip
"""Header, an even and an odd row of the labelled parts."""

TESTS = {
    "CoLA/test.tsv": ("index\tsentence", "{n}\tgood {n}"),
    "SST-2/test.tsv": ("index\tsentence", "{n}\tgood {n} \"quoted"),
    "MRPC/test.tsv": ("index\t#1 ID\t#2 ID\t#1 String\t#2 String", "{n}\t7\t8\ta {n}\tb ."),
    "QQP/test.tsv": ("id\tquestion1\tquestion2", "{n}\ta {n}\tb ."),
    "STS-B/test.tsv": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2", "{n}\tg\tf\ty\t0\ts\ts\ta {n}\tb ."
    ),
    "MNLI/test_matched.tsv": ("index\tsentence1\tsentence2", "{n}\ta {n}\tb ."),
    "MNLI/test_mismatched.tsv": ("index\tsentence1\tsentence2", "{n}\tc {n}\td ."),
    "QNLI/test.tsv": ("index\tquestion\tsentence", "{n}\ta {n}\tb ."),
    "RTE/test.tsv": ("index\tsentence1\tsentence2", "{n}\ta {n}\tb ."),
    "WNLI/test.tsv": ("index\tsentence1\tsentence2", "{n}\ta {n}\tb ."),
    "AX/diagnostic.tsv": ("index\tsentence1\tsentence2", "{n}\ta {n}\tb ."),
}  # fmt: skip

LABELS = {
    "cola": ("unacceptable", "acceptable"),
    "sst2": ("NEGATIVE", "POSITIVE"),  # a model may spell them in another case
    "mrpc": ("not_equivalent", "equivalent"),
    "qqp": ("not_duplicate", "duplicate"),
    "stsb": ("score",),
    "mnli": ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"),  # and in another order
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
    "wnli": ("not_entailment", "entailment"),
}


def write_tests(folder: Path, rows: int = 5) -> Path:
    """The test parts of the whole benchmark, of so many rows each."""
    for name, (header, row) in TESTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([header, *(row.format(n=n) for n in range(rows))]) + "\n", encoding="utf-8")
    return folder


def write_devs(folder: Path, rows: int = 4) -> Path:
    """The validation parts of the nine tasks that have one."""
    files = {f"{name}/dev.tsv": [header, *((odd if n % 2 else even).format(n=n) for n in range(rows))]
             for name, (header, even, odd) in PAIRS.items()}  # fmt: skip
    files["CoLA/dev.tsv"] = [f"gj04\t{n % 2}\t\tgood {n}" for n in range(rows)]
    three = ("entailment", "neutral", "contradiction")
    for part in ("matched", "mismatched"):
        files[f"MNLI/dev_{part}.tsv"] = [
            "index\tsentence1\tsentence2\tgold_label", *(f"{n}\ta {n}\tb {part}\t{three[n % 3]}" for n in range(rows))
        ]  # fmt: skip
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_runs(folder: Path, make_model: MakeModel) -> Path:
    """A finished run of each task, as far as anybody looks for one: a model with its state."""
    for task, labels in LABELS.items():
        problem = {"problem_type": "regression"} if task == "stsb" else {}
        model = make_model("classification", labels, **problem)
        state = {"command_name": "finetune", "task": task, "state": "finished", "ended": "2026-01-01T00:00:00"}
        (model / "bertkit.json").write_text(json.dumps(state))
        folder.mkdir(parents=True, exist_ok=True)
        model.rename(folder / task)
    return folder
