"""``bertkit corpus inspect``: each fault is found in a text that has it, and none in one that has not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpora import prose, sentence, text_of

from bertkit.cli.main import run
from bertkit.corpus.training import train_wordpiece
from bertkit.jobs.columns import shown_width
from bertkit.jobs.console import Console
from bertkit.jobs.replay import replay
from bertkit.randomness import stream

Documents = list[list[str]]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary that is made for the prose."""
    folder = tmp_path_factory.mktemp("vocabulary")
    train_wordpiece(iter([*prose(), ["< p > /"]]), size=400, lowercase=True).save(folder, max_length=512)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.fixture
def inspect(here: Path, vocabulary: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def call(*argv: str, code: int = 0) -> dict[str, Any]:
        given = [*argv] if "--tokenizer" in argv else [*argv, "--tokenizer", str(vocabulary)]
        assert run(["corpus", "inspect", *given, "--json"]) == code
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    return call


def judged(told: dict[str, Any]) -> dict[str, str]:
    return {judgement["kind"]: judgement["level"] for judgement in told["judgements"]}


def test_a_text_without_fault_has_none(inspect: Any) -> None:
    Path("text.txt").write_text(text_of(prose()))
    Path("other.txt").write_text(text_of(prose(20, seed=1)))
    told = inspect("text.txt", "--valid", "other.txt", "--strict")
    assert told["judgements"] == []
    assert told["counts"]["documents"] == 60
    assert told["sentence_lengths"]["count"] == told["counts"]["sentences"] == 60 * 12
    assert told["unknown_share"] == 0
    assert [epoch["max_length"] for epoch in told["epochs"]] == [128, 512]
    assert all(0.2 < epoch["is_next"] < 0.8 for epoch in told["epochs"])
    assert told["seen"][0]["rows"] == 20


def some_copied(documents: Documents) -> Documents:
    return [*documents, *documents[:6]]


def all_copied(documents: Documents) -> Documents:
    return documents * 2


def lines_copied(documents: Documents) -> Documents:
    return [[*lines, documents[n + 30][0]] if n < 10 else lines for n, lines in enumerate(documents)]


def framed(documents: Documents) -> Documents:
    return [["Kemo selin vos rabas tibes mokes libas.", *lines, "Rabas sekes"] for lines in documents]


def without_documents(documents: Documents) -> Documents:
    return [[line for lines in documents for line in lines]]


def one_sentence(documents: Documents) -> Documents:
    rng = stream(2, "test")
    return [[sentence(rng)] for _ in range(100)]


def partly_chinese(documents: Documents) -> Documents:
    return [*documents, ["今天天气很好，他们去公园散步。" * 60]]


def foreign(documents: Documents) -> Documents:
    letters = str.maketrans("aeiou", "eioua")
    return [[line.lower().translate(letters) for line in lines] for lines in documents]


def with_signs(documents: Documents) -> Documents:
    return [[line.replace(".", " §.") for line in lines] for lines in documents]


def wrapped(documents: Documents) -> Documents:
    return [[part for line in lines for part in re.findall(r".{40,50}(?: |$)|.+$", line)] for lines in documents]


def html(documents: Documents) -> Documents:
    return [[f"<p>{lines[0]}</p>", *lines[1:]] for lines in documents]


def latin1(documents: Documents) -> Documents:
    return [[lines[0].replace("ba", "bÃ©", 1), *lines[1:]] for lines in documents]


@pytest.mark.parametrize(
    ("kind", "level", "damaged"),
    [
        ("duplicate-documents", "warning", some_copied),
        ("duplicate-documents", "error", all_copied),
        ("duplicate-lines", "warning", lines_copied),
        ("boilerplate-lines", "warning", framed),
        ("no-document-boundaries", "error", without_documents),
        ("one-sentence-documents", "warning", one_sentence),
        ("unknown-words", "warning", with_signs),
        ("script-not-in-vocabulary", "warning", partly_chinese),
        ("many-pieces", "warning", foreign),
        ("broken-lines", "warning", wrapped),
        ("markup", "warning", html),
        ("misread-characters", "warning", latin1),
    ],
)
def test_each_fault_is_found_and_no_other(inspect: Any, kind: str, level: str, damaged: Callable[[Documents], Documents]) -> None:
    Path("text.txt").write_text(text_of(damaged(prose())), "utf-8")
    told = inspect("text.txt")
    found = judged(told)
    assert found == {kind: level}
    judgement = next(judgement for judgement in told["judgements"] if judgement["kind"] == kind)
    assert judgement["hint"]
    assert judgement["figures"]


def test_a_text_of_two_files_of_which_one_has_no_blank_line(inspect: Any) -> None:
    Path("a.txt").write_text(text_of(prose()))
    Path("b.txt").write_text(text_of(prose(3, seed=1)).replace("\n\n", "\n"))
    told = inspect("a.txt", "b.txt")
    assert judged(told) == {"no-document-boundaries": "warning"}
    assert told["judgements"][0]["figures"]["examples"] == ["b.txt"]
    assert judged(inspect("b.txt", "--documents", "line")) == {}


def test_small_letters_read_as_cased(inspect: Any) -> None:
    Path("text.txt").write_text(text_of(prose()).upper())
    told = inspect("text.txt", "--cased")
    assert judged(told) == {"unknown-words": "error"}
    assert "--uncased" in told["judgements"][0]["hint"]
    assert told["judgements"][0]["figures"]["lowercased_share"] == 1


def test_text_of_the_validation_file_in_the_text(inspect: Any) -> None:
    documents = prose()
    Path("text.txt").write_text(text_of(documents))
    # Five new documents, one that is in the text, one of which nine tenths are, one of which half is.
    new = prose(7, seed=1)
    most, half = [*documents[1], new[0][0][:60]], [*documents[2][:2], *new[6][:2]]
    Path("valid.txt").write_text(text_of([*new[:5], documents[9], most, half]))
    told = inspect("text.txt", "--valid", "valid.txt")
    assert judged(told) == {"validation-in-training": "error"}
    figures = told["judgements"][0]["figures"]
    assert (figures["found"], figures["rows"]) == (2, 8)
    assert [(each["where"], each["document"]) for each in figures["examples"]] == [
        ("valid.txt, document 6", 10),
        ("valid.txt, document 7", 2),
    ]


def test_rows_of_a_tasks_files_in_the_text(inspect: Any) -> None:
    documents = prose()
    Path("text.txt").write_text(text_of(documents))
    task = Path("task")
    task.mkdir()
    (task / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"{lines[0]}\t0\n" for lines in documents))
    rows = [sentence(stream(n, "row")) for n in range(98)] + [documents[3][0], "Too short."]
    (task / "dev.tsv").write_text("sentence\tlabel\n" + "".join(f"{row}\t0\n" for row in rows))
    told = inspect("text.txt", "--against", "task")
    assert judged(told) == {"evaluation-in-training": "warning"}
    figures = told["judgements"][0]["figures"]
    assert (figures["source"], figures["found"], figures["rows"], figures["too_short"]) == ("task/dev.tsv", 1, 99, 2)
    assert figures["examples"] == [{"where": "task/dev.tsv, line 100", "text": documents[3][0][:120], "document": 4}]
    assert inspect("text.txt", "--against", "task/train.tsv")["judgements"][0]["level"] == "error"


def test_other_texts_that_are_not_there_are_said_before_any_work(inspect: Any, here: Path) -> None:
    Path("text.txt").write_text(text_of(prose()))
    for flag in ("--against", "--valid"):
        assert inspect("text.txt", flag, "nowhere", code=4)["error"]["where"] == "nowhere"
    assert not (here / "cache").exists()


def test_strict_is_exit_3_and_tells_all_the_same(inspect: Any) -> None:
    Path("text.txt").write_text(text_of(all_copied(prose())))
    told = inspect("text.txt", "--strict", code=3)
    assert (told["ok"], told["error"]["kind"]) == (False, "data")
    assert judged(told) == {"duplicate-documents": "error"}
    assert told["counts"]["documents"] == 120


def test_a_cache_that_may_not_be_written_is_enough_for_a_look(inspect: Any, here: Path) -> None:
    Path("text.txt").write_text(text_of(prose()))
    store = inspect("text.txt")["stores"][0]
    Path(store).rename("kept")
    shutil.rmtree("cache")
    Path("cache").write_text("a file, in which nobody can make a folder")  # whoever runs the tests may write everywhere
    assert inspect("kept", code=0)["judgements"] == []


def test_a_store_is_inspected_by_its_folder_or_name(inspect: Any, vocabulary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(without_documents(prose())))
    whole = inspect("text.txt")
    assert run(["corpus", "build", "text.txt", "--tokenizer", str(vocabulary), "--output", "store", "-q"]) == 0
    capsys.readouterr()
    for name in ("store", Path(whole["stores"][0]).name[:8]):
        assert run(["corpus", "inspect", name, "--json"]) == 0  # its vocabulary is in it
        told = json.loads(capsys.readouterr().out)
        assert judged(told) == {"no-document-boundaries": "error"}
        for same in ("counts", "unigram_cross_entropy", "sentence_lengths", "document_lengths", "epochs", "examples"):
            assert told[same] == whole[same]


def test_the_page_fits_80_columns_and_has_no_escapes(here: Path, vocabulary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(all_copied(prose())) + "\n今天\x1b[31m天气很好。\n", "utf-8")
    assert run(["corpus", "inspect", "text.txt", "--tokenizer", str(vocabulary)]) == 0
    shown = capsys.readouterr().out
    assert max(map(shown_width, shown.split("\n"))) <= 80
    assert "\x1b" not in shown
    for words in ("documents", "Tokens of a sentence", "█", "IsNext", "[MASK=", "Error: 60 of 121 documents", "--dedup exact"):
        assert words in shown


def test_a_vocabulary_is_trained_as_pretrain_does_and_kept(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(prose()))
    for again in (False, True):
        assert run(["corpus", "inspect", "text.txt", "--vocab-size", "150", "--json"]) == 0
        shown = capsys.readouterr()
        assert ("Training an uncased vocabulary of 150 entries" in shown.err) is not again
        assert json.loads(shown.out)["vocabulary"] == {"size": 150, "lowercase": True}


def test_a_vocabulary_of_another_store_is_refused(here: Path, vocabulary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(prose()))
    assert run(["corpus", "build", "text.txt", "--vocab-size", "150", "--output", "store", "-q"]) == 0
    assert run(["corpus", "inspect", "store", "--tokenizer", str(vocabulary)]) == 2
    assert "another tokenizer" in capsys.readouterr().err


def test_a_run_is_inspected_by_its_text_and_by_its_steps(
    inspect: Any, vocabulary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text.txt").write_text(text_of(prose()))
    argv = ["--corpus", "text.txt", "--tokenizer", str(vocabulary), "--size", "tiny", "--steps", "2", "--batch-size", "2", "-q"]
    assert run(["pretrain", *argv, "--output", "run", "--max-length", "64"]) == 0
    capsys.readouterr()
    assert run(["corpus", "inspect", "run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["judgements"], [epoch["max_length"] for epoch in told["epochs"]]) == ("text.txt", [], [64])

    again, _ = replay(Path("run"), 2, Console(quiet=True))
    assert run(["corpus", "inspect", "run", "--step", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: told[name] for name in again.to_json()} == json.loads(json.dumps(again.to_json()))
    assert run(["corpus", "inspect", "run", "--step", "2"]) == 0
    shown = capsys.readouterr().out
    assert "Step 2 was seen: epoch 1, batch 2, phase 1, L = 64, mlm+nsp, 2 sequences." in shown
    assert max(map(shown_width, shown.split("\n"))) <= 80
    for sequence in again.sequences:
        masked = sum(label != "" for label in sequence.label_tokens)
        assert f"{len(sequence.after)} tokens, {masked} to be guessed" in shown
    assert len(re.findall(r"\[[^\]\s]*=", shown)) - 3 == sum(len(sequence.labels) for sequence in again.sequences)
    assert run(["corpus", "inspect", "run", "--step", "3"]) == 2
    assert run(["corpus", "inspect", "text.txt", "--step", "3"]) == 2


def test_a_run_is_inspected_with_its_own_examples(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(prose()))
    train_wordpiece(iter(prose()), size=60, lowercase=True).save(Path("pieces"), max_length=512)  # words are of several pieces
    argv = ["--corpus", "text.txt", "--tokenizer", "pieces", "--size", "tiny", "--steps", "1", "--batch-size", "2", "-q"]
    for objective, masking in (("mlm+sop", "word"), ("mlm", "token")):
        made = ["--objective", objective, "--masking", masking, "--output", objective]
        assert run(["pretrain", *argv, *made, "--max-length", "64"]) == 0
    capsys.readouterr()
    assert run(["corpus", "inspect", "mlm+sop", "--show", "20"]) == 0
    page = capsys.readouterr().out
    assert all(words in page for words in ("% InOrder", "- InOrder", "- Swapped"))
    assert "Next" not in page
    assert re.search(r"\w\[[^\]]*=", page) is None  # of a word that is masked whole no piece stands before a mask
    assert run(["corpus", "inspect", "mlm", "--show", "20"]) == 0
    page = capsys.readouterr().out
    assert "no pairs" in page
    assert re.search(r"\w\[[^\]]*=", page) is not None
    Path("tuned").mkdir()
    Path("tuned", "bertkit.json").write_text('{"command_name": "finetune"}')
    assert run(["corpus", "inspect", "tuned"]) == 2
    assert "a run of `bertkit finetune`" in capsys.readouterr().err


def test_lines_that_repeat_are_told_of_one_long_document_too(inspect: Any) -> None:
    lines = [line for document in prose() for line in document]
    Path("text.txt").write_text(
        "\n".join(
            line + ("\nThis line stands in it again and again and again." if n % 5 == 0 else "") for n, line in enumerate(lines)
        )
    )
    assert judged(inspect("text.txt"))["duplicate-lines"] == "warning"


def test_the_shards_of_a_text_are_one_corpus(inspect: Any, vocabulary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(text_of(prose()))
    for shard in ("1/2", "2/2"):
        argv = ["text.txt", "--tokenizer", str(vocabulary), "--output", "shards", "--shard", shard, "-q"]
        assert run(["corpus", "build", *argv]) == 0
    capsys.readouterr()
    whole, shards = inspect("text.txt"), inspect("shards")
    assert [Path(store).name for store in shards["stores"]] == ["shard-1-of-2", "shard-2-of-2"]
    for same in ("sentence_lengths", "document_lengths", "unigram_cross_entropy", "unknown_share", "judgements"):
        assert shards[same] == whole[same]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name", "argv", "kinds"),
    [
        ("enwiki", "bert-base-uncased", (), []),
        ("zhwiki", "bert-base-chinese", ("--uncased",), []),
        ("enwiki", "bert-base-chinese", ("--uncased",), ["many-pieces"]),
        ("zhwiki", "bert-base-uncased", (), ["script-not-in-vocabulary"]),
    ],
)
def test_wikipedia_is_clean_and_only_with_a_vocabulary_of_its_language(
    inspect: Any, real_data: Path, text: str, name: str, argv: tuple[str, ...], kinds: list[str]
) -> None:
    told = inspect(
        str(real_data / f"data/corpora/{text}-valid.txt"),
        "--tokenizer",
        str(real_data / f"data/vocab/{name}-vocab.txt"),
        *argv,
    )
    assert [judgement["kind"] for judgement in told["judgements"]] == kinds
