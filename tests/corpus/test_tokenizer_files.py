from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import MissingError, ModelError, UsageError
from bertkit.notices import collecting

TEXT = "Résumé of Ångström: 中文 text, [MASK] too! " + "word " * 700


def vocab(folder: Path, data: bytes = b"", name: str = "vocab.txt") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data or "".join(f"{t}\n" for t in [*SPECIALS, "a", "b"]).encode())
    return folder / name


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip", [None, True, False])
@pytest.mark.parametrize("chinese", [True, False])
def test_transformers_loads_the_same_ids_and_flags(tmp_path: Path, lowercase: bool, strip: bool | None, chinese: bool) -> None:
    from transformers import AutoTokenizer

    trained = train_wordpiece(
        [[TEXT] * 3], size=90, lowercase=lowercase, strip_accents=strip, tokenize_chinese_chars=chinese, min_frequency=1
    )
    trained.save(tmp_path, max_length=64)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = TEXT.replace("[MASK]", "mask")
    ids = trained.encode([text])[0].tolist()
    assert theirs(text)["input_ids"] == [2, *ids, 3]
    assert theirs("a", text, truncation=True)["input_ids"][-1] == 3
    assert len(theirs(text, truncation=True)["input_ids"]) == theirs.model_max_length == 64
    assert theirs("a [MASK]")["input_ids"] == [2, *trained.encode_masked("a [MASK]").tolist(), 3]
    assert (theirs.do_lower_case, theirs.strip_accents, theirs.tokenize_chinese_chars) == (lowercase, strip, chinese)
    assert (theirs.pad_token_id, theirs.unk_token_id, theirs.mask_token_id) == (0, 1, 4)
    assert load_wordpiece(tmp_path) == trained
    (tmp_path / "vocab.txt").unlink()
    assert load_wordpiece(tmp_path) == trained  # from tokenizer.json alone


def test_the_files_are_those_that_transformers_writes(tmp_path: Path) -> None:
    from transformers import BertTokenizer

    path = vocab(tmp_path / "a")
    theirs: Any = BertTokenizer(str(path), do_lower_case=False, strip_accents=True, model_max_length=512)
    theirs.save_pretrained(tmp_path / "theirs")
    load_wordpiece(tmp_path / "theirs").save(tmp_path / "ours", max_length=512)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        ours, expected = (json.loads((tmp_path / who / name).read_bytes()) for who in ("ours", "theirs"))
        assert ours == expected
    assert (tmp_path / "ours/vocab.txt").read_bytes() == path.read_bytes()


def test_pipelines_cut_long_texts(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForMaskedLM, pipeline

    trained = train_wordpiece([["the words of a text"] * 3], size=40, lowercase=True)
    trained.save(tmp_path, max_length=16)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = BertConfig(vocab_size=trained.size, max_position_embeddings=16, **sizes)
    BertForMaskedLM(config).save_pretrained(tmp_path)
    feature: Any = pipeline("feature-extraction", model=str(tmp_path), device="cpu")
    assert len(feature("words " * 1000, truncation=True)[0]) == 16


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "lines"), [("uncased", 30522), ("cased", 28996), ("chinese", 21128), ("multilingual-cased", 119547)]
)
def test_googles_vocabularies(real_data: Path, tmp_path: Path, name: str, lines: int) -> None:
    from transformers import AutoTokenizer

    path = real_data / f"data/vocab/bert-base-{name}-vocab.txt"
    wordpiece = load_wordpiece(path, cased="cased" in name and name != "uncased")
    assert wordpiece.size == lines == len(set(wordpiece.vocabulary))
    assert sum("\u2028" in token for token in wordpiece.vocabulary) == (2 if name == "chinese" else 0)
    wordpiece.save(tmp_path, max_length=512)
    assert (tmp_path / "vocab.txt").read_bytes() == path.read_bytes()
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = (real_data / "data/corpora/zhwiki-valid.txt").read_text("utf-8")[:20_000].replace("\n", " ")
    assert theirs(text, add_special_tokens=False)["input_ids"] == wordpiece.encode([text])[0].tolist()


def test_blank_and_repeated_lines(tmp_path: Path) -> None:  # C07
    data = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\nb\na\nc\n"
    with collecting() as heard:
        wordpiece = load_wordpiece(vocab(tmp_path, data))
    assert [n.kind for n in heard] == ["vocabulary-blank", "vocabulary-repeated"]
    assert "(7)" in heard[0].message
    assert "'a' on lines 6 and 9" in heard[1].message
    assert wordpiece.size == 10
    assert wordpiece.encode(["a b c"])[0].tolist() == [8, 7, 9]
    assert wordpiece.replaceable.tolist() == [7, 8, 9]
    wordpiece.save(tmp_path / "out", max_length=512)
    assert (tmp_path / "out/vocab.txt").read_bytes() == data
    again = load_wordpiece(tmp_path / "out")
    assert again == wordpiece


def test_special_tokens_missing(tmp_path: Path) -> None:  # C08
    with pytest.raises(ModelError, match=r"no \[PAD\].*'<pad>'"):
        load_wordpiece(vocab(tmp_path, b"<pad>\n<unk>\n[CLS]\n[SEP]\n<mask>\na\n"))
    wordpiece = load_wordpiece(vocab(tmp_path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"))
    with pytest.raises(ModelError, match=r"no \[MASK\]"):
        _ = wordpiece.mask_id


def test_cased_or_not_is_asked(tmp_path: Path) -> None:  # C11
    path = vocab(tmp_path, "".join(f"{t}\n" for t in [*SPECIALS, "[unused1]", "<S>", "Hello", "hello"]).encode())
    (tmp_path / "config.json").write_text("{}")
    for place in (tmp_path, path):
        with pytest.raises(UsageError, match=r"Hello.*--cased or --uncased") as caught:
            load_wordpiece(place)
        assert caught.value.exit_code == 2
        cased = load_wordpiece(place, cased=True)
        assert cased.encode(["Hello"])[0].tolist() == [7]
        assert load_wordpiece(place, cased=False).encode(["Hello"])[0].tolist() == [8]
    cased.save(tmp_path / "out", max_length=512)
    assert load_wordpiece(tmp_path / "out").lowercase is False
    assert json.loads((tmp_path / "out/tokenizer_config.json").read_bytes())["do_lower_case"] is False


def test_no_capitals_means_uncased(tmp_path: Path) -> None:
    assert load_wordpiece(vocab(tmp_path)).lowercase is True


def test_what_the_config_says_stands(tmp_path: Path) -> None:
    path = vocab(tmp_path)
    config = {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_wordpiece(tmp_path).flags == Flags(lowercase=False, strip_accents=True, tokenize_chinese_chars=False)
    assert load_wordpiece(path).lowercase is False
    with collecting() as heard:
        assert load_wordpiece(tmp_path, cased=False).lowercase is True
    assert [n.kind for n in heard] == ["cased"]


def test_tokenizer_json_says_it_where_the_config_is_silent(tmp_path: Path) -> None:
    path = vocab(tmp_path)
    (tmp_path / "tokenizer.json").write_text(WordPiece([*SPECIALS, "a", "b"], Flags(lowercase=False)).to_tokenizer_json())
    assert load_wordpiece(path.parent).lowercase is False


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("tokenizer.json", b'{"model": {"type": "BPE", "vocab": {}}}', ModelError),
        ("tokenizer.json", b"[1", ModelError),
        ("tokenizer.json", b"[" * 100_000, ModelError),
        ("tokenizer.json", b"[]", ModelError),
        ("tokenizer_config.json", b'{"do_lower_case": "yes"}', ModelError),
        ("vocab.txt", b"", ModelError),
        ("vocab.txt", b"[PAD]\n\xff\n", ModelError),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, data: bytes, error: type[Exception]) -> None:
    vocab(tmp_path)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error) as caught:
        load_wordpiece(tmp_path)
    assert name in str(caught.value) or name == "tokenizer_config.json"


def test_disagreeing_files_are_refused(tmp_path: Path) -> None:
    vocab(tmp_path)
    (tmp_path / "tokenizer.json").write_text(WordPiece([*SPECIALS, "b", "a"], Flags(lowercase=True)).to_tokenizer_json())
    with pytest.raises(ModelError, match="disagree"):
        load_wordpiece(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "x"):
        with pytest.raises(MissingError):
            load_wordpiece(place)


def test_windows_line_ends(tmp_path: Path) -> None:
    data = "".join(f"{t}\r\n" for t in [*SPECIALS, "a"]).encode()
    wordpiece = load_wordpiece(vocab(tmp_path, data))
    assert wordpiece.vocabulary == (*SPECIALS, "a")
    wordpiece.save(tmp_path / "out", max_length=8)
    assert (tmp_path / "out/vocab.txt").read_bytes() == data


@pytest.mark.data
def test_a_real_folder_without_vocab_txt(real_data: Path) -> None:
    wordpiece = load_wordpiece(real_data / "models/splade-tiny-bert-L2-H128")
    assert wordpiece.size == 30522
    assert wordpiece.lowercase
    assert wordpiece == load_wordpiece(real_data / "data/vocab/bert-base-uncased-vocab.txt", cased=False)
