"""``predict glue``: the eleven files of the benchmark's server, from a run of each task and the published test parts."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from glue_files import write_runs, write_tests
from job_tests import Call, MakeModel

from bertkit.jobs import submission

FILES = {
    "CoLA.tsv": {"0", "1"}, "SST-2.tsv": {"0", "1"}, "MRPC.tsv": {"0", "1"}, "QQP.tsv": {"0", "1"}, "WNLI.tsv": {"0", "1"},
    "STS-B.tsv": None, "QNLI.tsv": {"entailment", "not_entailment"}, "RTE.tsv": {"entailment", "not_entailment"},
    "MNLI-m.tsv": {"entailment", "neutral", "contradiction"}, "MNLI-mm.tsv": {"entailment", "neutral", "contradiction"},
    "AX.tsv": {"entailment", "neutral", "contradiction"},
}  # fmt: skip
"""The server's file names, and the labels that it takes; STS-B has numbers from 0 to 5."""


@pytest.fixture
def runs(make_model: MakeModel, tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs", make_model)


def test_the_archive_is_what_the_server_takes(bertkit: Call, runs: Path, tmp_path: Path) -> None:
    write_tests(tmp_path / "glue")
    flags = ("predict", "glue", "--submission", "out/glue.zip", "--data", "glue", "--precision", "fp32")
    done = bertkit(*flags)
    assert done.code == 0, done.err
    assert done.report["output"] == "out/glue.zip"
    assert done.report["files"] == dict.fromkeys(FILES, 5)
    assert done.report["models"]["AX.tsv"] == "runs/mnli"
    assert "CoLA.tsv 5 instead of 1,063" in done.warned("other-rows")[0]
    with zipfile.ZipFile("out/glue.zip") as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == set(FILES)
        texts = {name: archive.read(name).decode() for name in FILES}
    for name, labels in FILES.items():
        lines = [line.split("\t") for line in texts[name].splitlines()]
        assert lines[0] == ["index", "prediction"]
        assert [line[0] for line in lines[1:]] == ["0", "1", "2", "3", "4"]
        for _, label in lines[1:]:
            assert label in labels if labels else 0 <= float(label) <= 5, name
    # The same as each task's own predict leaves, and the same bytes again.
    for task, folder, name in (("mnli", "MNLI", "MNLI-mm.tsv"), ("stsb", "STS-B", "STS-B.tsv"), ("sst2", "SST-2", "SST-2.tsv")):
        one = ("predict", task, "--model", runs / task, "--data", Path("glue") / folder, "--precision", "fp32")
        assert bertkit(*one, "--output", f"{task}/said.jsonl").code == 0
        assert Path(task, name).read_text() == texts[name]
    assert not done.warned("part-of-training")
    before = Path("out/glue.zip").read_bytes()
    assert bertkit(*flags).code == 0
    assert Path("out/glue.zip").read_bytes() == before
    assert [path.name for path in Path("out").iterdir()] == ["glue.zip"]


def test_runs_of_a_part_of_the_training_data_are_named(bertkit: Call, runs: Path, sst2: Path, tiny: Path, tmp_path: Path) -> None:
    write_tests(tmp_path / "glue")
    trial = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--precision", "fp32", "--epochs", "1")
    assert bertkit(*trial, "--max-train-samples", "40", "--output", runs / "sst2", "--overwrite").code == 0
    done = bertkit("predict", "glue", "--submission", "glue.zip", "--data", "glue", "--precision", "fp32")
    assert done.code == 0, done.err
    assert done.warned("part-of-training") == ["Trained on the first rows alone (--max-train-samples): runs/sst2, 40 rows."]


def test_everything_that_is_missing_is_named_at_once(
    bertkit: Call, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tests(tmp_path / "glue")
    (tmp_path / "glue/MNLI/test_mismatched.tsv").unlink()
    (tmp_path / "glue/AX/diagnostic.tsv").unlink()
    (tmp_path / "glue/WNLI/test.tsv").unlink()
    (tmp_path / "glue/WNLI").rmdir()
    (runs / "rte/bertkit.json").unlink()
    monkeypatch.setattr(submission, "_predicted", None)  # nothing may be predicted
    done = bertkit("predict", "glue", "--submission", "glue.zip", "--data", "glue", "--runs", runs)
    assert (done.code, done.report["error"]["kind"]) == (4, "missing")
    message = done.report["error"]["message"]
    lines = message.splitlines()[1:]
    assert len(lines) == 4
    assert "MNLI-mm.tsv: no test_mismatched part" in message
    assert "AX.tsv: There is no test part" in message
    assert "WNLI.tsv: There is no such folder" in message
    assert "RTE.tsv: no finished run of rte" in message
    assert "bertkit finetune rte" in message
    assert not Path("glue.zip").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0\ta\tb", "2\ta\tb"], "index is '2', where the server counts 1"),
        (["0\ta\tb", "1\ta"], "2 columns instead of 3"),
        (["1\ta\tb"], "index is '1', where the server counts 0"),
    ],
)
def test_other_rows_than_the_published_ones_are_refused(
    bertkit: Call, runs: Path, tmp_path: Path, rows: list[str], message: str
) -> None:
    write_tests(tmp_path / "glue")
    (tmp_path / "glue/RTE/test.tsv").write_text("\n".join(["index\tsentence1\tsentence2", *rows]) + "\n")
    done = bertkit("predict", "glue", "--submission", "glue.zip", "--data", "glue")
    assert (done.code, done.report["error"]["kind"]) == (3, "data")
    assert message in done.report["error"]["message"]
    assert "RTE/test.tsv, line" in done.report["error"]["where"]
    assert not Path("glue.zip").exists()


def test_somebodys_file_is_left_alone(bertkit: Call, tmp_path: Path) -> None:
    (tmp_path / "thesis.zip").write_text("mine")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("CoLA.tsv", "")
        archive.writestr("photo.jpg", "")
    for name in ("thesis.zip", "photos.zip", "."):
        refused = bertkit("predict", "glue", "--submission", name, "--data", "glue")
        assert (refused.code, refused.report["error"]["kind"]) == (2, "folder")
    assert Path("thesis.zip").read_text() == "mine"
    replaced = bertkit("predict", "glue", "--submission", "thesis.zip", "--data", "glue", "--overwrite")
    assert replaced.code == 4  # by now it is only the runs and data that are missing
    assert Path("thesis.zip").read_text() == "mine"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("glue",), "--submission glue.zip"),
        (("sst2", "--submission", "glue.zip"), "bertkit predict glue"),
        (("glue", "--submission", "glue.zip", "--model", "runs/a"), "takes no --model"),
    ],
)
def test_what_is_no_submission_is_refused(bertkit: Call, flags: tuple[str, ...], words: str) -> None:
    refused = bertkit("predict", *flags)
    assert refused.code == 2
    assert words in f"{refused.report['error']['message']} {refused.report['error']['hint']}"
