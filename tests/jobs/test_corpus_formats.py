"""Corpora in every format through the commands: one vocabulary, one store, and errors with their exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from corpora import prose, text_of
from job_tests import Call

from bertkit.corpus.documents import CorpusSettings
from bertkit.corpus.store import TokenStore
from bertkit.jobs.start import corpus_sizes

DOCUMENTS = prose(20)
FORMATS = ("a.txt", "a.txt.gz", "a.jsonl", "a.parquet", "parts", "parts/*.txt")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    plain = text_of(DOCUMENTS)
    (tmp_path / "a.txt").write_text(plain)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(plain.encode()))
    joined = ["\n".join(document) for document in DOCUMENTS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text, "id": 1}) + "\n" for text in joined))
    pq.write_table(pa.table({"text": joined}), tmp_path / "a.parquet")
    (tmp_path / "parts").mkdir()
    for number, part in enumerate((DOCUMENTS[:7], DOCUMENTS[7:])):
        (tmp_path / "parts" / f"{number}.txt").write_text(text_of(part))
    return tmp_path


def test_every_format_gives_one_vocabulary_and_one_store(texts: Path, bertkit: Call) -> None:
    vocabularies, stores = set(), set()
    for number, name in enumerate(FORMATS):
        folder = f"vocabulary-{number}"
        assert bertkit("tokenizer", "train", name, "--vocab-size", "90", "-o", folder).code == 0
        vocabularies.add((texts / folder / "vocab.txt").read_bytes())
        built = bertkit("corpus", "build", name, "--tokenizer", "vocabulary-0")
        assert (built.code, built.report["counts"]["documents"]) == (0, 20)
        store = TokenStore.open(Path(built.report["output"]))
        stores.add((store.ids.tobytes(), store.document_ends.tobytes()))
    assert len(vocabularies) == len(stores) == 1


def test_the_standard_input_is_for_a_build_alone(texts: Path, bertkit: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bertkit("tokenizer", "train", "a.txt", "--vocab-size", "90", "-o", "vocabulary").code == 0
    plain = bertkit("corpus", "build", "a.txt.gz", "--tokenizer", "vocabulary").report
    with (texts / "a.txt.gz").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = bertkit("corpus", "build", "-", "--tokenizer", "vocabulary").report
    assert (piped["fingerprint"], piped["counts"]["tokens"]) == (plain["fingerprint"], plain["counts"]["tokens"])
    for argv in (("pretrain", "--corpus", "-"), ("tokenizer", "train", "-"), ("corpus", "inspect", "-")):
        refused = bertkit(*argv)
        assert refused.code == 2
        assert "can be read once" in refused.report["error"]["message"]
        assert "bertkit corpus build -" in refused.report["error"]["hint"]


def test_what_is_wrong_is_said_with_its_exit_code(texts: Path, bertkit: Call) -> None:
    (texts / "b.jsonl").write_text('{"body": "some text"}\n')
    cases = [
        (("tokenizer", "train", "*.nothing"), 4, "No file of text matches"),
        (("tokenizer", "train", "b.jsonl"), 3, "no field 'text'"),
        (("corpus", "build", "b.jsonl", "--vocab-size", "90"), 3, "no field 'text'"),
        (("pretrain", "--corpus", "b.jsonl"), 3, "no field 'text'"),
        (("pretrain", "--corpus", "hf:own/wiki"), 4, "HF_HUB_OFFLINE is set"),
        (("tokenizer", "train", "hf:a/b/c"), 2, "hf:owner/name"),
    ]
    for argv, code, words in cases:
        done = bertkit(*argv)
        assert (done.code, words in done.report["error"]["message"]) == (code, True), (argv, done.report)
    assert bertkit("tokenizer", "train", "b.jsonl", "--text-field", "body", "--vocab-size", "40", "-o", "v").code == 0
    assert bertkit("corpus", "build", "b.jsonl", "--text-field", "body", "--tokenizer", "v").code == 0


def test_the_sizes_that_a_finished_run_remembers(texts: Path) -> None:
    paths = [*map(str, (texts / "a.txt.gz", texts / "parts", f"{texts}/parts/*.txt", texts / "none")), "-", "hf:own/wiki"]
    sizes = corpus_sizes(paths, CorpusSettings())
    parts = sum(path.stat().st_size for path in (texts / "parts").iterdir())
    assert sizes == dict(zip(paths, [(texts / "a.txt.gz").stat().st_size, parts, parts], strict=False))
