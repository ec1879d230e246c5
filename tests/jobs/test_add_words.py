"""``pretrain --init-from MODEL --add-words FILE``: the run, its files, and going on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from job_tests import MakeModel
from small_runs import SMALL, at_step, call, checkpoints, done, gone, same_bits, weights

from bertkit.corpus.wordpiece import load_wordpiece

WORDS = "Metaclass\ncoroutine\nlambda\nmetaclass\na\n"
EMBEDDINGS, BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    return tmp_path / "words.txt"


def flags(model: Path, corpus: Path, words: Path, output: Path, *more: str) -> list[str]:
    small = SMALL.replace("--size tiny --vocab-size 300 ", "").split()
    named = ["--init-from", str(model), "--add-words", str(words), "-o", str(output)]
    return ["pretrain", "--corpus", str(corpus), *small, *named, *more]


def auto(folder: Path, name: str) -> Any:
    transformers = pytest.importorskip("transformers")
    loaded, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    return loaded


@pytest.mark.parametrize("tied", [True, False])
def test_a_run_with_new_words(make_model: MakeModel, corpus: Path, words: Path, tmp_path: Path, tied: bool) -> None:
    transformers = pytest.importorskip("transformers")
    start = make_model(tie_word_embeddings=tied)
    before = load_wordpiece(start)
    told = done(*flags(start, corpus, words, tmp_path / "run", "--steps", "1", "--lr", "1e-9", "--json"))
    assert "New words: 3 of" in told.err
    skipped = [w["message"] for w in told.object["warnings"] if w["kind"] == "new-words-skipped"]
    assert len(skipped) == 1
    assert "1 in the vocabulary already, 1 in the file twice" in skipped[0]
    after = load_wordpiece(tmp_path / "run")
    assert after.vocabulary == (*before.vocabulary, "metaclass", "coroutine", "lambda")
    old, new = weights(start), weights(tmp_path / "run")
    for name in (EMBEDDINGS, BIAS, *(() if tied else ("cls.predictions.decoder.weight",))):
        torch.testing.assert_close(new[name][: before.size], old[name], atol=1e-6, rtol=0)
        for word in after.vocabulary[before.size :]:
            pieces = before.encode([word])[0].tolist()
            assert len(pieces) > 1
            torch.testing.assert_close(new[name][after.token_id(word)], old[name][pieces].mean(dim=0), atol=1e-6, rtol=0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run")
    assert tokenizer.tokenize("A Coroutine, metaclass") == [*tokenizer.tokenize("a"), "coroutine", ",", "metaclass"]
    model = auto(tmp_path / "run", "AutoModelForMaskedLM")
    assert model.config.vocab_size == after.size == len(tokenizer)
    assert model.get_input_embeddings().weight.shape[0] == after.size


def test_going_on_with_it_and_finding_it_finished(tiny: Path, corpus: Path, words: Path, tmp_path: Path) -> None:
    argv = flags(tiny, corpus, words, tmp_path / "whole", "--steps", "4", "--save-every", "2")
    done(*argv)
    broken = flags(tiny, corpus, words, tmp_path / "broken", "--steps", "4", "--save-every", "2")
    with at_step(3, gone):
        assert call(*broken).code != 0
    assert checkpoints(tmp_path / "broken") == [2]
    assert load_wordpiece(tmp_path / "broken/checkpoints/checkpoint-2").token_id("coroutine") is not None
    words.write_text(WORDS + "generator\n")
    other = call(*broken)
    assert (other.code, "tokenizer" in other.err) == (2, True)
    words.write_text(WORDS)
    done(*broken)
    assert same_bits(tmp_path / "broken", tmp_path / "whole")
    assert done(*argv, "--json").object["state"] == "already finished"
    words.write_text(WORDS + "generator\n")
    changed = call(*argv)
    assert (changed.code, "words.txt has changed" in changed.err) == (2, True)


def test_a_token_store_that_knows_the_words(tiny: Path, corpus: Path, words: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done(*flags(tiny, corpus, words, run, "--steps", "1"))
    for tokenizer, code in ((tiny, 2), (run, 0)):
        store = tmp_path / f"store-{code}"
        done("corpus", "build", str(corpus), "--tokenizer", str(tokenizer), "-o", str(store), "-q")
        found = call(*flags(tiny, store, words, tmp_path / f"from-{code}", "--steps", "1", "--json"))
        assert found.code == code
        assert "text files are read" not in found.err
    assert same_bits(tmp_path / "from-0", run)


def test_what_is_refused(tiny: Path, corpus: Path, words: Path, tmp_path: Path) -> None:
    argv = flags(tiny, corpus, words, tmp_path / "run", "--steps", "1", "--json")
    words.write_text("meta-class\n")
    refused = call(*argv)
    assert (refused.code, "'meta-class', is 3" in refused.object["error"]["message"]) == (3, True)
    words.unlink()
    assert call(*argv).code == 4
    assert not (tmp_path / "run").exists()
    place = argv.index("--init-from")
    alone = call(*argv[:place], *argv[place + 2 :])
    assert (alone.code, "init_from" in alone.object["error"]["message"]) == (2, True)
