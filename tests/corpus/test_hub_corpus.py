"""Data sets of the hub as a corpus, against a small hub on the loopback address; each try in a process of its own, since the
libraries read the environment once. What must hold: the same documents as from files, nothing kept whole, and an answer
within seconds without a network.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hub_server
import pytest
from written_texts import as_json_lines, write_parquet

pytestmark = pytest.mark.slow

README = """---
configs:
- config_name: en
  default: true
  data_files:
  - split: train
    path: en/train-*
  - split: validation
    path: en/validation-*
- config_name: zh
  data_files: zh/*.jsonl.gz
- config_name: tables
  data_files: tables/*.csv
---
"""
LONG = [[f"Line {line} of document {n}." for line in range(3)] for n in range(400)]
SHORT = [["one", "two"], ["three"]]
READ = """
import json, sys, time
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.errors import BertkitError
from bertkit.notices import collecting
started = time.monotonic()
for name, kinds in json.loads(sys.argv[1]):
    settings = CorpusSettings(**kinds)
    with collecting() as heard:
        try:
            corpus = open_corpus([name], settings)
            told = []
            documents = list(read_documents(corpus, settings, ReadReport(), lambda done, total: told.append((done, total))))
            names = [source.name for source in corpus.sources]
            found = {"documents": documents, "digests": corpus.digests(), "names": names, "told": told[-1], "bytes": corpus.bytes}
        except BertkitError as error:
            found = {"error": str(error), "code": error.exit_code}
    print(json.dumps(found | {"heard": [notice.kind for notice in heard]}))
print(json.dumps(time.monotonic() - started))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    wiki, books = folder / "datasets/own/wiki", folder / "datasets/own/books"
    for inside in (
        wiki / "en",
        wiki / "zh",
        wiki / "tables",
        books / "plain_text" / "train",
        books / "plain_text" / "partial-test",
    ):
        inside.mkdir(parents=True)
    (wiki / "README.md").write_text(README, encoding="utf-8")
    write_parquet(wiki / "en/train-00000-of-00002.parquet", LONG[:300], row_group_size=100)
    write_parquet(wiki / "en/train-00001-of-00002.parquet", LONG[300:])
    write_parquet(wiki / "en/validation-00000-of-00001.parquet", SHORT)
    (wiki / "zh/a.jsonl.gz").write_bytes(gzip.compress(as_json_lines(SHORT)))
    (wiki / "tables/a.csv").write_text("text\na\n", encoding="utf-8")
    (books / "books.py").write_text("raise SystemExit", encoding="utf-8")
    write_parquet(books / "plain_text/train/0000.parquet", SHORT)
    write_parquet(books / "plain_text/partial-test/0000.parquet", SHORT)
    return folder


def read(wanted: list[tuple[str, dict[str, str]]], home: Path, **environment: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(wanted)],
        env={**os.environ, "HF_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert "\r" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_documents_of_a_data_set(root: Path, tmp_path: Path) -> None:
    wanted: list[tuple[str, dict[str, str]]] = [
        ("hf:own/wiki", {}),
        ("hf:own/wiki:en:validation", {}),
        ("hf:own/wiki::validation", {}),
        ("hf:own/wiki:zh", {}),
        ("hf:own/books", {}),
        ("hf:own/books:plain_text:test", {}),
    ]
    with hub_server.serving(root) as hub:
        *found, _ = read(wanted, tmp_path, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        asked = list(hub.asked)
    train, *others = found
    assert train["documents"] == LONG
    assert train["names"] == [f"hf:own/wiki/en/train-{n:05}-of-00002.parquet" for n in range(2)]
    assert train["digests"] == [f"parquet:hub:{hub_server.COMMIT}:en/train-{n:05}-of-00002.parquet" for n in range(2)]
    size = sum(path.stat().st_size for path in (root / "datasets/own/wiki/en").glob("train-*"))
    assert train["bytes"] == size
    assert train["told"] == [size, size]
    assert [each["documents"] for each in others] == [SHORT] * 5
    assert [each["heard"] for each in found] == [[]] * 5 + [["partial-data-set"]]
    assert any("GET /datasets/own/wiki/resolve" in line for line in asked)
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".gz", ".arrow")]
    assert kept == []


def test_what_is_not_there(root: Path, tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, str], int, tuple[str, ...]]] = [
        ("hf:own/nothing", {}, 4, ("no data set 'own/nothing' on the hub",)),
        ("hf:own/wiki:fr", {}, 4, ("no configuration 'fr'", "en, zh, tables")),
        ("hf:own/wiki:en:trian", {}, 4, ("no split 'trian'", "Did you mean 'train'", "train, validation")),
        ("hf:own/books:plain", {}, 4, ("no configuration 'plain'", "plain_text")),
        ("hf:own/wiki", {"text_field": "txt"}, 3, ("no field 'txt'", "Did you mean 'text'", "hf:own/wiki/en/train-00000")),
        ("hf:own/wiki:tables", {}, 3, (".csv files", "a.csv")),
        ("hf:", {}, 2, ("hf:owner/name",)),
    ]
    with hub_server.serving(root) as hub:
        *found, _ = read([(name, kinds) for name, kinds, _, _ in cases], tmp_path, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
    for (name, _, code, words), each in zip(cases, found, strict=True):
        assert each.get("code") == code, (name, each)
        assert all(word in each["error"] for word in words), each


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_without_a_network_the_answer_comes_in_seconds(tmp_path: Path, environment: dict[str, str]) -> None:
    found, seconds = read([("hf:own/wiki", {})], tmp_path, **environment)
    assert found["code"] == 4
    assert all(word in found["error"] for word in ("hf:own/wiki", "HF_ENDPOINT", "HF_HUB_OFFLINE"))
    assert seconds < 20  # left to themselves the libraries retry for 25 s; importing them takes 3 s, more on a busy machine


def test_a_hub_that_goes_away(root: Path, tmp_path: Path) -> None:
    script = """
import sys, bertkit.corpus.hub as hub
from bertkit.corpus.documents import open_corpus
from bertkit.errors import MissingError
from huggingface_hub import HfFileSystem
source = open_corpus(["hf:own/wiki"]).sources[0]
def gone(*args, **kinds):
    raise ConnectionResetError(104, "Connection reset by peer")
from huggingface_hub import hf_file_system
hf_file_system.HfFileSystemFile._fetch_range = gone
try:
    list(source.spans(replace=False))
except MissingError as error:
    print(error.exit_code, error)
"""
    with hub_server.serving(root) as hub:
        environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
    assert done.stdout.startswith("4 The data set cannot be read: the connection failed")
    assert "HF_ENDPOINT" in done.stdout
