"""A few thousand weights, a few rows, some text, and the program in this process: what the tests of the commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
import torch

from bertkit.cli.main import run
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.wordpiece import WordPiece
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model

sys.path.insert(0, str(Path(__file__).parent))  # under importlib mode pytest puts no folder on the path

from job_tests import QUICK, Call, Done, MakeModel, sst2_lines


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTKIT_CACHE", str(folder))
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "BERTKIT_DEBUG"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 40 documents of real English, with a ``valid.txt`` of six beside it."""
    from small_runs import documents, write

    folder = tmp_path_factory.mktemp("text")
    texts = documents(46)
    write(folder / "valid.txt", texts[40:])
    return write(folder / "train.txt", texts[:40])


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def bertkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs the program here, in ``tmp_path``, on one thread; ``--json`` is added unless ``plain`` is true."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("BERTKIT_DEBUG", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)

    def call(*argv: object, plain: bool = False) -> Done:
        code = run([str(argument) for argument in argv] + ([] if plain else ["--json"]))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return Done(code, shown.out, shown.err)

    return call


@pytest.fixture(scope="session")
def wordpiece() -> WordPiece:
    lines = [line for name in sorted(topics)[:25] for line in topics[name].splitlines() if line.strip()]
    letters = ["a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 [ ] . , good bad fine poor"] * 5
    return train_wordpiece([lines, letters], size=400, lowercase=True)


@pytest.fixture(scope="session")
def make_model(wordpiece: WordPiece, tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Makes a folder with a BERT of 32 columns; ``labels`` and any configuration field may be given."""

    def make(
        head: str = "pretraining", labels: tuple[str, ...] | None = None, *, seed: int = 1, layers: int = 1, **changes: Any
    ) -> Path:
        config = EncoderConfig.of_size("tiny", vocab_size=wordpiece.size).changed(
            hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64, labels=labels, **changes
        )
        folder = tmp_path_factory.mktemp("model")
        build_model(head, config, seed=seed).save(folder)
        wordpiece.save(folder, max_length=config.max_position_embeddings)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny(make_model: MakeModel) -> Path:
    """A body with pretraining heads."""
    return make_model()


@pytest.fixture
def sst2(tmp_path: Path) -> Path:
    """SST-2's folder: 80 rows of training, 24 of dev, 10 of test without labels."""
    folder = tmp_path / "SST-2"
    folder.mkdir()
    (folder / "train.tsv").write_text(sst2_lines(range(80)))
    (folder / "dev.tsv").write_text(sst2_lines(range(100, 124)))
    (folder / "test.tsv").write_text(sst2_lines(range(200, 210), gold=False))
    return folder


@pytest.fixture(scope="session")
def trained(make_model: MakeModel, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on reviews, the same on every CPU: in bf16 another one would come out."""
    place = tmp_path_factory.mktemp("trained")
    for name, numbers in (("train", range(80)), ("dev", range(100, 124))):
        (place / f"{name}.tsv").write_text(sst2_lines(numbers))
    os.environ["OMP_NUM_THREADS"] = "1"
    flags = ["--model", str(tiny), "--data", str(place), "--output", str(place / "run"), "-q", *QUICK, "--precision", "fp32"]
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        assert run(["finetune", "sst2", *flags]) == 0
    finally:
        sys.stdout = stdout
    return place / "run"
