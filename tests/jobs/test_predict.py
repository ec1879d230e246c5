"""``bertkit predict``: a line a row, in input order, whatever the texts look like."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from job_tests import QUICK, Call, MakeModel, predictions, review

TABLE = b'\xef\xbb\xbftext,label\r\nnull,0\r\nNA,1\r\n"two\nlines, ""quoted""",0\r\n"",1\r\nnan,0\r\n'
# Declarations that name no official files: the kinds have names of their own for them.
OWN_TASKS = """
from bertkit.tasks.registry import Task, register
register(Task(name="own_tags", title="Tags", kind="tagging", metrics=("f1",)))
register(Task(name="own_spans", title="Answers", kind="span", metrics=("f1", "exact")))
"""
TEXTS = ["null", "NA", 'two\nlines, "quoted"', "", "nan"]


def test_texts_that_look_missing_are_texts(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_bytes(TABLE)
    (tmp_path / "train.csv").write_bytes(TABLE)
    done = bertkit(
        "finetune", "classification", "--model", tiny, "--train-file", "train.csv", "--validation-file", "test.csv",
        "--steps", "1",
    )  # fmt: skip
    assert done.metrics["examples"] == 5
    assert done.warned("labels") == ["2 labels, taken as names of classes: 0, 1."]
    for data in ("test.csv", "."):
        assert bertkit("predict", "classification", "--data", data, "--output", "said.jsonl").metrics == {"examples": 5}
        records = predictions(Path("said.jsonl"))
        assert [record["id"] for record in records] == ["0", "1", "2", "3", "4"]
        assert [record["gold"] for record in records] == ["0", "1", "0", "1", "0"]
        assert {record["prediction"] for record in records} <= {"0", "1"}
    # One by one they get what they get together: no text was taken for another or for nothing.
    for text, record in zip(TEXTS, records, strict=True):
        Path("one.jsonl").write_text(json.dumps({"text": text}) + "\n")
        bertkit("predict", "classification", "--data", "one.jsonl", "--output", "alone.jsonl")
        (alone,) = predictions(Path("alone.jsonl"))
        assert alone["probabilities"] == pytest.approx(record["probabilities"], abs=1e-5)


def test_lines_of_stdin_go_to_stdout(
    bertkit: Call, trained: Path, monkeypatch: pytest.MonkeyPatch, sst2: Path, tmp_path: Path
) -> None:
    texts = [review(number)[0] for number in range(300, 306)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts) + "\n"))
    done = bertkit("predict", "sst2", "--model", trained, plain=True)
    assert done.code == 0
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["prediction"] for record in records] == [review(number)[1] for number in range(300, 306)]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    empty = bertkit("predict", "sst2", "--model", trained, "--output", "said.jsonl")
    assert (empty.code, empty.report["error"]["kind"]) == (4, "missing")
    assert not Path("said.jsonl").exists()


def test_labels_that_the_model_does_not_know_are_handed_on(bertkit: Call, trained: Path) -> None:
    """Test parts have placeholders for what is hidden; only who scores needs golds that a model can give."""
    Path("new.csv").write_text("text,label\na good film,?\na bad film,positive\n")
    named = ("--test-file", "new.csv", "--text-column", "text", "--label-column", "label")
    done = bertkit("predict", "classification", "--model", trained, *named, "--output", "out.jsonl")
    assert done.code == 0, done.err
    assert [record["gold"] for record in predictions(Path("out.jsonl"))] == ["?", "positive"]
    assert not done.warned("positive-label")
    assert bertkit("eval", "classification", "--model", trained, *named).report["error"]["where"] == "new.csv, line 2"


def test_a_test_part_without_labels(bertkit: Call, trained: Path, sst2: Path) -> None:
    refused = bertkit("eval", "sst2", "--model", trained, "--data", sst2, "--part", "test", "--output", "out")
    assert (refused.code, refused.report["error"]["kind"]) == (3, "data")
    assert "no labels" in refused.report["error"]["message"]
    assert "bertkit predict sst2" in refused.report["error"]["hint"]
    assert not Path("out").exists()
    done = bertkit("predict", "sst2", "--model", trained, "--data", sst2, "--output", "out/said.jsonl")
    assert (done.metrics, done.report["output"]) == ({"examples": 10}, "out/said.jsonl")
    assert "Written to out/said.jsonl" in done.err
    expected = [review(number)[1] for number in range(200, 210)]
    assert [record["prediction"] for record in predictions(Path("out/said.jsonl"))] == expected
    lines = Path("out/SST-2.tsv").read_text().splitlines()
    assert lines == ["index\tprediction", *(f"{i}\t{int(name == 'positive')}" for i, name in enumerate(expected))]
    into = bertkit("predict", "sst2", "--model", trained, "--data", sst2, "--output", "out")
    assert (into.code, into.report["error"]["kind"]) == (2, "folder")
    assert bertkit("predict", "sst2", "--model", trained, "--data", sst2).code == 2  # --json needs a place


def test_an_output_that_is_someones_is_left_alone(bertkit: Call, trained: Path, sst2: Path) -> None:
    flags = ("predict", "sst2", "--model", trained, "--data", sst2)
    Path("thesis.txt").write_text("mine\n")
    refused = bertkit(*flags, "--output", "thesis.txt")
    assert (refused.code, refused.report["error"]["kind"]) == (2, "folder")
    assert "--overwrite" in refused.report["error"]["hint"]
    assert Path("thesis.txt").read_text() == "mine\n"
    assert bertkit(*flags, "--output", "thesis.txt", "--overwrite").metrics == {"examples": 10}
    assert bertkit(*flags, "--output", "thesis.txt").metrics == {"examples": 10}  # its own it replaces
    both = bertkit(*flags, "--output", "SST-2.tsv")
    assert (both.code, both.report["error"]["kind"]) == (2, "usage")
    Path("own.jsonl").write_bytes(kept := b'{"sentence": "a", "label": 1}\n')
    validation = ("--validation-file", "own.jsonl", "--part", "validation")
    for given in (("--test-file", "own.jsonl"), validation, ("--data", "own.jsonl")):
        read = bertkit("predict", "sst2", "--model", trained, *given, "--output", "own.jsonl", "--overwrite")
        assert (read.code, read.report["error"]["kind"]) == (2, "usage"), given
        assert Path("own.jsonl").read_bytes() == kept
    table = bertkit(*flags, "--output", "out/said.csv")
    assert (table.code, table.report["error"]["hint"]) == (2, "--output out/said.jsonl")
    assert not Path("out").exists()


def test_an_official_file_that_is_someones_is_left_alone(
    bertkit: Call, trained: Path, sst2: Path, make_model: MakeModel, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(squad(question("1", "a", ("b", 2)), context="a b c"))
    (tmp_path / "t.txt").write_text("hello O\na B-X\n\n")
    (tmp_path / "own.py").write_text(OWN_TASKS)
    own = ("--task-file", "own.py")
    tags, spans = make_model("tagging", ("O", "B-X", "I-X")), make_model("span")
    for number, (task, *flags, name) in enumerate(
        [
            ("sst2", "--model", trained, "--data", sst2, "SST-2.tsv"),
            ("conll2003", "--model", tags, "--test-file", "t.txt", "predictions.txt"),
            ("squad", "--model", spans, "--test-file", "q.json", "predictions.json"),
            ("squad", "--model", spans, "--test-file", "q.json", "nbest_predictions.json"),
            ("squad_v2", "--model", spans, "--test-file", "q.json", "null_odds.json"),
            ("own_tags", *own, "--model", tags, "--test-file", "t.txt", "predictions.txt"),
            ("own_spans", *own, "--model", spans, "--test-file", "q.json", "predictions.json"),
        ]
    ):
        folder = Path(f"out{number}")
        folder.mkdir()
        mine = folder / name
        mine.write_text("mine\n")
        output = ("--output", folder / "said.jsonl")
        refused = bertkit("predict", task, *flags, *output)
        assert (refused.code, refused.report["error"]["kind"], refused.report["error"]["where"]) == (2, "folder", str(mine))
        assert "--overwrite" in refused.report["error"]["hint"]
        assert (mine.read_text(), list(folder.iterdir())) == ("mine\n", [mine])
        assert bertkit("predict", task, *flags, *output, "--overwrite").code == 0
        assert mine.read_text() != "mine\n"
        for again in ("said.jsonl", "other.jsonl"):  # an official file is replaced, as predictions are
            assert bertkit("predict", task, *flags, "--output", folder / again).code == 0
    named = ("--model", trained, "--data", sst2)
    # A part without an official file asks for nothing.
    assert bertkit("predict", "sst2", *named, "--part", "validation", "--output", "out0/dev.jsonl").code == 0


# Tags

SENTENCE = "hello O\n\u200e B-X\na O\n\ufffd I-X\nna B-Y\n"
LONG = "\n".join(f"{word} {tag}" for word, tag in [("hello", "O"), ("a", "B-X"), ("na", "I-X"), (".", "O")] * 100) + "\n"
TAGGED = "-DOCSTART- O\n\nhello O\na B-X\nna I-X\n\nfine B-Y\n.\tO\n\n"


@pytest.fixture
def tagger(bertkit: Call, tiny: Path, tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text(TAGGED * 4 + LONG)
    done = bertkit(
        "finetune", "conll2003", "--model", tiny, "--train-file", "train.txt", "--validation-file", "train.txt", *QUICK,
        "--epochs", "30", "--output", "tagger",
    )  # fmt: skip
    assert done.metrics["f1"] == 1.0
    return Path("tagger")


def test_one_tag_a_word_deleted_words_and_long_sentences_included(
    bertkit: Call, tagger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SENTENCE + "\n\n-DOCSTART- O\n\n" + LONG
    (tmp_path / "test.txt").write_text(source, encoding="utf-8")
    flags = ("--model", tagger, "--test-file", "test.txt", "--max-length", "128")
    done = bertkit("predict", "conll2003", *flags, "--output", "said/said.jsonl")
    assert done.metrics == {"examples": 2}
    first, second = predictions(Path("said/said.jsonl"))
    assert (len(first["prediction"]), len(second["prediction"])) == (5, 400)
    assert (first["prediction"][1], first["prediction"][3]) == ("O", "O")
    assert second["prediction"] == ["O", "B-X", "I-X", "O"] * 100
    lines = Path("said/predictions.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) == len(source.split("\n"))
    for ours, theirs in zip(lines, source.split("\n"), strict=True):
        assert ours == theirs or (theirs and ours.startswith(theirs + " ") and ours.count(" ") == 2)
        assert (ours == theirs) == (not theirs or theirs.startswith("-DOCSTART-"))
    scored = bertkit("eval", "conll2003", *flags)
    assert scored.metrics["X_recall"] == pytest.approx(100 / 102)  # B-X and I-X stand on deleted words: two more, and missed
    assert "out of reach" in scored.err

    # running text: entities by the characters of the raw line, and a line without a word
    monkeypatch.setattr("sys.stdin", io.StringIO("hello  a na\u200e.\n \u200e\nfine\r\n"))
    piped = bertkit("predict", "conll2003", "--model", tagger, plain=True)
    assert (piped.code, len(piped.out.splitlines())) == (0, 3)
    one, nothing, last = (json.loads(line) for line in piped.out.splitlines())
    assert (one["words"], one["prediction"]) == (["hello", "a", "na", "."], ["O", "B-X", "I-X", "O"])
    assert one["entities"] == [{"type": "X", "text": "a na", "start": 7, "end": 11, "words": [1, 3]}]
    assert (nothing["words"], nothing["prediction"], nothing["entities"]) == ([], [], [])
    assert [last["text"][each["start"] : each["end"]] for each in last["entities"]] == ["fine"]


# Questions


def squad(*questions: dict[str, object], context: str) -> str:
    return json.dumps({"version": "x", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]})


def question(identity: str, text: str, *answers: tuple[str, int], **more: object) -> dict[str, object]:
    return {"id": identity, "question": text, "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


@pytest.mark.parametrize(
    ("context", "answer", "start"),
    [
        ("  Paris is big.", "Paris", 2),
        ("a b\r\nfine\r\n c", "fine", 5),
        ("价格は高い。 Key made it", "Key", 7),
        ("a Né b", "Né", 2),
    ],
)
def test_answers_are_slices_of_the_context(
    bertkit: Call, make_model: MakeModel, tmp_path: Path, context: str, answer: str, start: int
) -> None:
    assert context[start : start + len(answer)] == answer
    text = squad(
        question("1", "   Where?", (answer, start)),
        question("2", "elsewhere", (answer, start + 1)),
        context=context,
    )
    (tmp_path / "train.json").write_text(text, encoding="utf-8")
    model = make_model("span")
    done = bertkit(
        "finetune", "squad", "--model", model, "--train-file", "train.json", "--validation-file", "train.json",
        "--steps", "40", "--lr", "0.01", "--output", "run",
    )  # fmt: skip
    assert f"question 2: answer_start {start + 1} shows" in done.err
    assert (done.metrics["exact"], done.metrics["examples"]) == (100.0, 2)
    assert bertkit("predict", "squad", "--model", "run", "--test-file", "train.json", "--output", "said/said.jsonl").code == 0
    official = json.loads(Path("said/predictions.json").read_text(encoding="utf-8"))
    assert official == {"1": answer, "2": answer}
    record = predictions(Path("said/said.jsonl"))[0]
    assert context[record["start"] : record["end"]] == record["prediction"]
    assert set(json.loads(Path("said/nbest_predictions.json").read_text())) == {"1", "2"}
    assert not Path("said/null_odds.json").exists()


def test_a_model_that_is_not_a_number_says_which_question(bertkit: Call, make_model: MakeModel, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    model = make_model("span")
    weights = load_file(model / "model.safetensors")
    weights["qa_outputs.bias"] = weights["qa_outputs.bias"] * float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "q.json").write_text(squad(question("what-1", "a", ("b", 2)), context="a b c"))
    done = bertkit("eval", "squad", "--model", model, "--validation-file", "q.json", "--output", "out")
    assert (done.code, done.report["error"]["kind"]) == (3, "data")
    assert "what-1" in done.report["error"]["message"]
    assert not Path("out").exists()


@pytest.mark.parametrize("said", [True, False])
def test_questions_without_an_answer(bertkit: Call, make_model: MakeModel, tmp_path: Path, said: bool) -> None:
    more = {"is_impossible": True} if said else {}
    no = question("no", "b", **more)
    text = squad(question("yes", "a", ("b", 2), **({"is_impossible": False} if said else {})), no, context="a b c")
    (tmp_path / "q.json").write_text(text)
    from safetensors.numpy import load_file, save_file

    model = make_model("span")  # a head that says null: everything is 0, and null stands first
    weights = load_file(model / "model.safetensors")
    weights |= {name: value * 0 for name, value in weights.items() if name.startswith("qa_outputs")}
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    done = bertkit(
        "eval", "squad", "--model", model, "--validation-file", "q.json", "--set", "kind.null_threshold=-1", "--output", "out"
    )
    assert (done.metrics["NoAns_exact"], done.metrics["HasAns_exact"], done.metrics["exact"]) == (100.0, 0.0, 50.0)
    official = json.loads(Path("out/squad-validation/predictions.json").read_text())
    assert official == {"yes": "", "no": ""}
    assert set(json.loads(Path("out/squad-validation/null_odds.json").read_text())) == {"yes", "no"}
    # The first question has an answer; that others may have none is a fact of the file, and predict knows it as eval does.
    first = ("--model", model, "--max-eval-samples", "1", "--set", "kind.null_threshold=-1")
    alone = bertkit("eval", "squad", *first, "--validation-file", "q.json", "--output", "out1")
    assert (alone.metrics["HasAns_exact"], alone.metrics["examples"]) == (0.0, 1)
    bertkit("predict", "squad", *first, "--test-file", "q.json", "--output", "said.jsonl")
    assert predictions(Path("said.jsonl")) == predictions(Path("out1/squad-validation/predictions.jsonl"))
    plain = bertkit(
        "eval", "squad", "--model", model, "--validation-file", "q.json", "--set", "kind.null_answers=false", "--output", "out2"
    )
    assert plain.code == 0
    official = json.loads(Path("out2/squad-validation/predictions.json").read_text())
    assert all(official[name] in ("a", "a b", "a b c", "b", "b c", "c") for name in ("yes", "no"))


@pytest.mark.parametrize("stride", [120, 128, -1])
def test_a_stride_that_leaves_tokens_in_no_window_is_refused(
    bertkit: Call, make_model: MakeModel, tmp_path: Path, stride: int
) -> None:
    context = " ".join(["a"] * 157)
    (tmp_path / "q.json").write_text(squad(question("1", " ".join(["b"] * 11), ("a", 0)), context=context))
    command = (
        "predict",
        "squad",
        "--model",
        make_model("span"),
        "--test-file",
        "q.json",
        "--max-length",
        "128",
        "--output",
        "said/said.jsonl",
    )
    refused = bertkit(*command, "--stride", stride)
    assert refused.code == 2
    told = str(refused.report["error"])
    assert "stride" in told
    assert str(stride) in told
    assert "114" in told
    assert not Path("said").exists()
    assert bertkit(*command, "--stride", "113").code == 0


@pytest.mark.parametrize("segments", [1, 2])
def test_special_token_text_in_the_data_is_text(bertkit: Call, make_model: MakeModel, tmp_path: Path, segments: int) -> None:
    text = squad(question("1", "see [SEP] ?", ("[MASK]", 8)), context="this is [MASK] . [SEP] [CLS] b")
    (tmp_path / "q.json").write_text(text)
    model = make_model("span", type_vocab_size=segments)
    done = bertkit(
        "finetune", "squad", "--model", model, "--train-file", "q.json", "--validation-file", "q.json", "--steps", "40",
        "--lr", "0.01",
    )  # fmt: skip
    assert done.metrics["exact"] == 100.0
    assert done.metrics["steps"] == 40
    assert len(done.warned("one-segment")) == (segments == 1)


def test_stdin_is_utf8_whatever_the_locale(bertkit: Call, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\ufeffa good café\r\n".encode()), encoding="ascii"))
    assert bertkit("predict", "sst2", "--model", trained, plain=True).code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"fine\ncaf\xe9\n"), encoding="utf-8"))
    refused = bertkit("predict", "sst2", "--model", trained, "--output", "out.jsonl")
    assert (refused.code, refused.report["error"]["where"]) == (3, "stdin, line 2")
    assert not Path("out.jsonl").exists()


def test_an_output_below_a_file_is_refused_before_the_work(bertkit: Call, trained: Path, sst2: Path) -> None:
    Path("file").write_text("mine")
    refused = bertkit("predict", "sst2", "--model", trained, "--data", sst2, "--output", "file/below/out.jsonl")
    assert (refused.code, refused.report["error"]["kind"]) == (2, "folder")
    assert Path("file").read_text() == "mine"


@pytest.mark.parametrize("tag", ["?", "NN", "B-ORG", "B-X"])
def test_tags_that_the_model_lacks_are_handed_on_where_nobody_scores(
    bertkit: Call, make_model: MakeModel, tmp_path: Path, tag: str
) -> None:
    """A test file whose tags are hidden, or whose last column is another one."""
    (tmp_path / "test.txt").write_text(f"good a {tag}\nbad b {tag}\n\nx c {tag}\n")
    flags = ("--model", make_model("tagging", ("O", "B-X", "I-X")), "--test-file", "test.txt")
    assert bertkit("predict", "tokens", *flags, "--output", "out/said.jsonl").code == 0
    assert [record["gold"] for record in predictions(Path("out/said.jsonl"))] == [[tag, tag], [tag]]
    assert len(Path("out/predictions.txt").read_text().split("\n\n")) == 2
    assert bertkit("eval", "tokens", *flags, "--output", "evals").code == (0 if tag == "B-X" else 3)
