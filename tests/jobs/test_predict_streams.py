"""``bertkit predict`` of a stream: what comes out is what one batch gives, in input order, soon, and never reads far ahead."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from job_tests import Call, MakeModel, predictions, review, sst2_lines

from bertkit.cli.main import run
from bertkit.jobs import predict as predicting
from bertkit.jobs.console import Console
from bertkit.labelled import conll, tables
from bertkit.settings.commands import predict_settings
from bertkit.settings.reading import Entry
from bertkit.settings.resolve import resolve
from bertkit.tasks import tagging_files

ROWS = 600


class Source(io.TextIOBase):
    """Lines of which somebody counts how many were taken."""

    def __init__(self, count: int) -> None:
        self.count, self.taken = count, 0

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        for number in range(self.count):
            self.taken += 1
            yield review(number)[0] + "\n"


class Reader:
    """Counts the lines that were taken of a file by whoever is still reading it, not by passes that have ended."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        self._plain = tables.read_lines
        for room in (tables, conll, tagging_files):
            patch.setattr(room, "read_lines", self._read)

    def _read(self, path: Path, *, end: str = "\n") -> Iterator[str]:
        before, own = self.taken, 0
        try:
            for line in self._plain(path, end=end):
                own += 1
                self.taken = own
                yield line
        finally:
            self.taken = before


class Sink(io.StringIO):
    """What was written, and how many lines of a source had been taken when the nth line was."""

    def __init__(self, source: Source | Reader) -> None:
        super().__init__()
        self.source, self.lines, self.taken = source, 0, list[int]()

    def write(self, text: str) -> int:
        if text.strip():
            self.lines += 1
            self.taken.append(self.source.taken)
        return super().write(text)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(predicting, "_FIRST", 8)
    monkeypatch.setattr(predicting, "_MOST", 64)
    return 64


def test_it_never_reads_more_than_a_window_ahead(trained: Path, small_windows: int) -> None:
    source = Source(ROWS)
    sink = Sink(source)
    flags = {"task": Entry("sst2", ""), "model": Entry(str(trained), ""), "device.threads": Entry(1, "")}
    settings = resolve(predict_settings("sst2"), command="predict", flags=flags)
    outcome = predicting.predict(settings, Console(stdout=sink, stderr=io.StringIO()), source)
    assert outcome.metrics == {"examples": ROWS}
    assert sink.lines == ROWS
    assert sink.taken[0] == 8
    assert all(taken - written <= small_windows for written, taken in enumerate(sink.taken))
    records = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [record["id"] for record in records] == [str(number) for number in range(ROWS)]
    assert [record["prediction"] for record in records] == [review(number)[1] for number in range(ROWS)]


TAGS = ("O", "B-X", "I-X")
FILES: dict[str, tuple[str, tuple[str, ...] | None, str, str, Callable[[int], str]]] = {
    "classification": ("classification", ("no", "yes"), "own.csv", "text\n", lambda number: f"good {number}\n"),
    "choice": (
        "choice",
        None,
        "own.csv",
        "context,option1,option2\n",
        lambda number: f"a {number},{'good ' * (number % 5)}b,bad\n",
    ),
    "swag": (
        "choice",
        None,
        "own.csv",
        "sent1,sent2,ending0,ending1,ending2,ending3\n",
        lambda number: f"a {number}.,It,is,was,{'x ' * (number % 9)}will,has\n",
    ),
    "span": ("span", None, "own.csv", "question,context\n", lambda number: f"what?,a {number} {'good ' * (number % 7)}b\n"),
    "conll2003": ("tagging", TAGS, "own.conll", "", lambda number: f"{number} B-X\n\n"),
    "tokens": ("tagging", TAGS, "own.txt", "", lambda number: f"in {'a good ' * (number % 6)} {number}.\n"),
}


@pytest.mark.parametrize("task", FILES)
def test_no_file_is_read_more_than_a_window_ahead(
    task: str, make_model: MakeModel, small_windows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, labels, name, first, line = FILES[task]
    path = tmp_path / name
    path.write_text(first + "".join(line(number) for number in range(ROWS)))
    reader = Reader(monkeypatch)
    sink = Sink(reader)
    flags = {"task": task, "model": str(make_model(head, labels)), "data.test_file": str(path), "device.threads": 1}
    settings = resolve(predict_settings(task), command="predict", flags={key: Entry(value, "") for key, value in flags.items()})
    outcome = predicting.predict(settings, Console(stdout=sink, stderr=io.StringIO()))
    assert outcome.metrics == {"examples": ROWS}
    lines = line(0).count("\n")
    assert sink.taken[0] <= 8 * lines + 2  # a header, and the line behind the last sentence
    assert all(taken <= (written + small_windows) * lines + 2 for written, taken in enumerate(sink.taken))
    assert [json.loads(said)["id"] for said in sink.getvalue().splitlines()] == [str(number) for number in range(ROWS)]


def test_a_window_knows_what_all_rows_of_its_file_say(
    bertkit: Call, make_model: MakeModel, small_windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form of labels and the scheme of tags, which the rows of one window may not show."""
    rows = [f"c {number},a,b {number},d,{'AC'[number == 70]}\n" for number in range(90)]
    Path("own.csv").write_text("context,candidate1,candidate2,candidate3,label\n" + "".join(rows))
    words = ["-DOCSTART- O\n\n", *("good I-X\nfine I-X\nbad O\n\n" for _ in range(60)), *("a B-X\nb O\n\n" for _ in range(30))]
    Path("own.txt").write_text("".join(words) + "\n")
    Path("plain.txt").write_text("".join(["a I\nb O\n\n"] * 40 + ["a X\n"]))
    said, official = {}, {}
    for most in (small_windows, 1000):
        monkeypatch.setattr(predicting, "_FIRST", min(8, most) if most < 1000 else most)
        monkeypatch.setattr(predicting, "_MOST", most)
        for name, task, head, labels in (
            ("own.csv", "choice", "choice", None),
            ("own.txt", "tokens", "tagging", TAGS),
            ("plain.txt", "tokens", "tagging", ("I", "O", "X")),
        ):
            where = Path(f"{most}-{name}.d")
            done = bertkit(
                "predict", task, "--model", make_model(head, labels), "--test-file", name, "--output", where / "said.jsonl"
            )
            assert done.code == 0, done.out
            said[most, name] = predictions(where / "said.jsonl")
            if task == "tokens":
                official[most, name] = (where / "predictions.txt").read_text()
    for name in ("own.csv", "own.txt", "plain.txt"):
        few, all_at_once = said[small_windows, name], said[1000, name]
        assert [record["gold"] for record in few] == [record["gold"] for record in all_at_once]
        assert [record["prediction"] for record in few] == [record["prediction"] for record in all_at_once]
    assert [record["gold"] for record in said[small_windows, "own.csv"]][68:72] == [0, 0, 2, 0]
    assert said[small_windows, "own.txt"][0]["gold"] == ["B-X", "I-X", "O"]
    assert said[small_windows, "plain.txt"][0]["gold"] == ["I", "O"]
    for name in ("own.txt", "plain.txt"):
        assert official[small_windows, name] == official[1000, name]
        kept = [
            line.rpartition(" ")[0] if line and "DOCSTART" not in line else line for line in official[1000, name].splitlines()
        ]
        assert kept == Path(name).read_text().splitlines()


def test_windows_predict_what_one_batch_does(
    bertkit: Call, trained: Path, small_windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["", 'said "no" and "yes"', "good " * 300, "bad\tnever"] + [review(number)[0] * (number % 7) for number in range(146)]
    plain = [text.replace("\t", " ") for text in texts]
    Path("own.tsv").write_text("sentence\tlabel\n" + "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(plain)))
    Path("own.csv").write_text("sentence\n" + "".join('"' + text.replace('"', '""') + '"\n' for text in plain))
    Path("own.jsonl").write_text("".join(json.dumps({"sentence": text}) + "\n" for text in plain))
    flags = ("--model", trained, "--precision", "fp32", "--text-column", "sentence")
    said = {}
    for name in ("own.tsv", "own.csv", "own.jsonl"):
        task = "sst2" if name == "own.tsv" else "classification"
        assert bertkit("predict", task, *flags, "--test-file", name, "--output", "out/said.jsonl").metrics["examples"] == 150
        said[name] = predictions(Path("out/said.jsonl"))
    official = Path("out/SST-2.tsv").read_text().splitlines()
    monkeypatch.setattr(predicting, "_FIRST", 1000)
    monkeypatch.setattr(predicting, "_MOST", 1000)
    assert bertkit("predict", "sst2", *flags, "--test-file", "own.tsv", "--output", "out/said.jsonl").code == 0
    whole = predictions(Path("out/said.jsonl"))
    assert [record["gold"] for record in said["own.tsv"]] == [record["gold"] for record in whole]
    assert official == Path("out/SST-2.tsv").read_text().splitlines()
    assert official == ["index\tprediction", *(f"{n}\t{int(r['prediction'] == 'positive')}" for n, r in enumerate(whole))]
    for records in said.values():
        assert [record["id"] for record in records] == [str(number) for number in range(150)]
        for one, other in zip(records, whole, strict=True):
            assert one["prediction"] == other["prediction"]
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_what_is_said_of_the_rows_is_said_of_all_of_them(bertkit: Call, trained: Path, small_windows: int) -> None:
    lines = sst2_lines(range(100)).splitlines()
    lines[30] += "\tone too many"
    lines[90] = "good " * 200 + "\t1"
    Path("own.tsv").write_text("\n".join(lines) + "\n")
    done = bertkit("predict", "sst2", "--model", trained, "--test-file", "own.tsv", "--output", "said.jsonl")
    assert done.metrics == {"examples": 99}
    assert done.warned("skipped-rows") == ["1 rows were skipped: own.tsv, line 31: 3 columns instead of 2."]
    assert "1 of 99 texts were cut to the length" in done.err
    few = ("--test-file", "own.tsv", "--max-eval-samples", "20", "--output", "said.jsonl")
    assert bertkit("predict", "sst2", "--model", trained, *few).metrics == {"examples": 20}
    strict = bertkit("predict", "sst2", "--model", trained, "--test-file", "own.tsv", "--strict", "--output", "new.jsonl")
    assert (strict.code, strict.report["error"]["where"]) == (3, "own.tsv, line 31")
    assert not list(Path.cwd().glob("new.jsonl*"))  # nothing half-written, under no name


def test_labels_of_generic_names_are_those_of_the_whole_file(
    bertkit: Call, trained: Path, small_windows: int, tmp_path: Path
) -> None:
    config = json.loads((trained / "config.json").read_text())
    model = tmp_path / "generic"
    model.mkdir()
    for name in ("model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (model / name).write_bytes((trained / name).read_bytes())
    config |= {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}}
    (model / "config.json").write_text(json.dumps(config))
    Path("own.csv").write_text("text,label\n" + "".join(f"{review(n)[0]},{'no' if n < 90 else 'yes'}\n" for n in range(100)))
    flags = ("--model", model, "--test-file", "own.csv", "--output", "said.jsonl")
    assert bertkit("predict", "classification", *flags).metrics == {"examples": 100}
    assert {record["prediction"] for record in predictions(Path("said.jsonl"))} == {"no", "yes"}


def test_a_reader_that_goes_away_ends_it_quietly(
    trained: Path, small_windows: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    source, errors = Source(ROWS), io.StringIO()

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdin", source)
    monkeypatch.setattr("sys.stdout", Gone())
    monkeypatch.setattr("sys.stderr", errors)
    run(["predict", "sst2", "--model", str(trained)])
    assert source.taken == 8
    assert "Error" not in errors.getvalue()
