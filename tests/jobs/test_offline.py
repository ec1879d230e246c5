"""Local files touch no network: names cannot be resolved, the home is empty and read-only, and every score is computed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from glue_files import LABELS, write_devs
from job_tests import MakeModel, predictions

from bertkit.jobs.submission import FOLDERS

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, socket, sys, time
from pathlib import Path

tried, written, scratch = [], [], Path(os.environ["TMPDIR"])

def outside(path):
    path = Path(os.fsdecode(path)).absolute()
    return not any(path.is_relative_to(place) for place in (sys.argv[1], scratch, "/dev"))

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        tried.append([event, repr(arguments[-1] if event == "socket.connect" else arguments[:2])])
        raise OSError("there is no network here")
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(path, (str, bytes)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and outside(path):
            written.append(os.fsdecode(path))
    if event in ("os.mkdir", "os.rename") and outside(arguments[0]):
        written.append(os.fsdecode(arguments[0]))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
from bertkit.cli.main import run
codes = [run(command) for command in json.loads(sys.argv[2])]
local = [list(tried), list(written)]
started = time.monotonic()
codes.append(run(json.loads(sys.argv[3])))
print(json.dumps({"codes": codes, "local": local, "seconds": time.monotonic() - started, "after": written}))
"""


def test_scores_without_a_network_or_a_home(make_model: MakeModel, tmp_path: Path) -> None:
    home, out, data, scratch = (tmp_path / name for name in ("home", "out", "data", "scratch"))
    for folder in (home, out, data, scratch):
        folder.mkdir()
    write_devs(data)
    asked = {"id": "1", "question": "a ?", "answers": [{"text": "b", "answer_start": 2}]}
    for name, more in (("squad", []), ("squad2", [{"id": "2", "question": "c ?", "answers": [], "is_impossible": True}])):
        text = {"data": [{"title": "", "paragraphs": [{"context": "a b c", "qas": [asked, *more]}]}]}
        (data / f"{name}.json").write_text(json.dumps(text))
    (data / "tags.txt").write_text("Ann B-PER\nsaid O\n\nBob B-PER\n")
    shapes = {"stsb": {"problem_type": "regression"}}
    commands = []
    for task, labels in LABELS.items():
        model = make_model("classification", labels, **shapes.get(task, {}))
        commands.append(["eval", task, "--model", str(model), "--data", str(data / FOLDERS[task]), "--output", str(out / task)])
    span, tagger = make_model("span"), make_model("tagging", ("O", "B-PER", "I-PER"))
    for task, model, file in (("squad", span, "squad"), ("squad", span, "squad2"), ("conll2003", tagger, "tags")):
        path = next(data.glob(f"{file}.*"))
        commands.append(["eval", task, "--model", str(model), "--validation-file", str(path), "--output", str(out / file)])
    home.chmod(0o555)
    named = [
        "eval",
        "sst2",
        "--model",
        "owner/tiny",
        "--validation-file",
        str(data / "SST-2/dev.tsv"),
        "--output",
        str(out / "no"),
        "-q",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_", "TRANSFORMERS_"))}
    environment = kept | {"HOME": str(home), "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(out), json.dumps(commands), json.dumps(named)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["codes"] == [0] * len(commands) + [4], done.stderr
    assert told["local"] == [[], []]
    assert told["after"] == []
    assert told["seconds"] < 10
    assert list(home.iterdir()) + list(scratch.iterdir()) == []
    assert "HF_ENDPOINT" in done.stderr
    scores = {path.parents[1].name: json.loads(path.read_text()) for path in out.glob("*/*/metrics.json")}
    assert {name: score["examples"] for name, score in scores.items()} == {
        **dict.fromkeys(LABELS, 4), "squad": 1, "squad2": 2, "tags": 2
    }  # fmt: skip
    assert (out / "mnli/mnli-validation_mismatched/metrics.json").is_file()
    assert all(score[score["primary"]] is not None for score in scores.values())


def test_an_ascii_locale(tiny: Path, tmp_path: Path) -> None:
    rows = [("un é bon 中", "é"), ("pas bon", "中")] * 8
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text(
            "text,label\n" + "".join(f"{a} {i},{b}\n" for i, (a, b) in enumerate(rows)), "utf-8"
        )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "LANG"}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "OMP_NUM_THREADS": "1"}

    def bertkit(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bertkit", *command], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return (done.stdout + done.stderr).decode("ascii")

    said = bertkit(
        "finetune", "classification", "--model", str(tiny), "--data", ".", "--steps", "1", "--output-dir", "résultats"
    )  # fmt: skip
    assert "r\\xe9sultats" in said
    run = tmp_path / "résultats"
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "é", "1": "中"}
    assert "résultats" in (run / "bertkit.json").read_text(encoding="utf-8")
    bertkit("eval", "classification", "--model", "résultats", "--data", ".")
    assert {r["gold"] for r in predictions(run / "evals/classification-validation/predictions.jsonl")} == {"é", "中"}
    shown = bertkit("predict", "classification", "--model", "résultats", "--data", "dev.csv", "-q")
    records = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert [record["gold"] for record in records] == ["é", "中"] * 8
