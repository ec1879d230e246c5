"""Whole words of Chinese, from text through a build to masked batches, with a list of words and without one (C18)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.corpus.build import build_store
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.notices import collecting

PIECES = [*SPECIALS, *"我喜欢北京大学模型。", "bert", "un", "##want", "##ed"]
WORDPIECE = WordPiece(PIECES, Flags(lowercase=True))
MIXED = ["bert", "模", "型", "un", "##want", "##ed"]
LIST = "喜欢\t100\n北京\t300\n大学\t200\n"
ALL = MaskingSettings(kind="word", mask_share=1.0, random_share=0.0)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(["我喜欢北京大学", "BERT模型unwanted"] * 40), encoding="utf-8")
    return path


def source_of(path: Path, words: str | None, wordpiece: WordPiece = WORDPIECE, **examples) -> PretrainingSource:
    settings = CorpusSettings(words=words)
    store, _ = build_store(
        open_corpus([path]), wordpiece, settings, cache=path.parent / "cache", words=segmenter_of(settings.words)
    )
    return PretrainingSource(store, wordpiece, ExampleSettings(**examples), ALL, seed=3, batch_size=64)


def chosen(source: PretrainingSource, wordpiece: WordPiece, steps: int, epochs: int = 1):
    """Of each sequence its tokens as pieces (special ones left out), and which of them were chosen."""
    for epoch in range(epochs):
        for index in range(min(steps, source.steps(epoch))):
            (batch,) = source.step(epoch, index)
            ids = batch.packed.input_ids.numpy().copy()
            picked = ids == wordpiece.mask_id
            ids[batch.masked_positions.numpy()] = batch.masked_labels.numpy()
            for low, high in zip(batch.packed.boundaries[:-1].tolist(), batch.packed.boundaries[1:].tolist(), strict=True):
                plain = ~np.isin(ids[low:high], [wordpiece.cls_id, wordpiece.sep_id])
                yield [wordpiece.vocabulary[i] for i in ids[low:high][plain]], picked[low:high][plain]


def groups(source: PretrainingSource) -> tuple[Counter[str], Counter[str]]:
    """What was chosen, as far as one piece follows the other, in the Chinese sentence and in the mixed one."""
    found: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for pieces, picked in chosen(source, WORDPIECE, 4, epochs=60):
        assert pieces in (list("我喜欢北京大学"), MIXED)
        found[pieces == MIXED]["".join(piece if on else " " for piece, on in zip(pieces, picked, strict=True)).strip()] += 1
    return found


def test_without_a_list_each_character_is_a_word_and_latin_pieces_group(text: Path) -> None:
    with collecting() as heard:
        source = source_of(text, None, objective="mlm", max_length=16)
        chinese, mixed = groups(source)
    assert [notice.message for notice in heard if notice.kind == "chinese-by-character"] == [
        "69% of the tokens are Chinese characters, and no words are known for them: Chinese is masked by character. "
        "--words FILE (or jieba, rjieba) tells its words."
    ]
    assert {"我", "喜", "欢", "北", "京", "大", "学"} <= set(chinese)
    assert {"bert", "模", "型", "un##want##ed"} <= set(mixed)
    assert not any("un" in group and "un##want##ed" not in group for group in mixed)


def test_with_a_list_its_words_are_masked_as_units(text: Path) -> None:
    path = text.with_name("words.txt")
    path.write_text(LIST + "模型\t50\n", encoding="utf-8")
    with collecting() as heard:
        chinese, mixed = groups(source_of(text, str(path), objective="mlm", max_length=16))
    assert "chinese-by-character" not in {notice.kind for notice in heard}
    assert {"我", "喜欢", "北京", "大学"} <= set(chinese)
    for group in chinese:
        assert all((a in group) == (b in group) for a, b in ("喜欢", "北京", "大学"))
    assert {"bert", "模型", "un##want##ed"} <= set(mixed)
    assert all(("模" in group) == ("型" in group) for group in mixed)


def test_another_list_is_another_store(text: Path) -> None:
    path = text.with_name("words.txt")
    fingerprints = []
    for content in (LIST, LIST.replace("大学\t200", "北京大学\t200"), LIST):
        path.write_text(content, encoding="utf-8")
        fingerprints.append(source_of(text, str(path), objective="mlm").store.fingerprint)
    plain = source_of(text, None, objective="mlm").store
    assert plain.word_begins(np.arange(5)) is None
    assert fingerprints[0] == fingerprints[2] != fingerprints[1]
    assert plain.fingerprint not in fingerprints


@pytest.mark.data
def test_real_chinese_words_are_masked_whole(real_data: Path, tmp_path: Path) -> None:
    wordpiece = load_wordpiece(real_data / "data/vocab/bert-base-chinese-vocab.txt", cased=False)
    words = real_data / "data/vocab/zh-words-jieba-top60k.txt"
    text = tmp_path / "text.txt"
    with (real_data / "data/corpora/zhwiki-train.txt").open(encoding="utf-8") as file:
        text.write_text(file.read(100_000), encoding="utf-8")
    segmenter = segmenter_of(str(words))
    assert segmenter is not None
    together = apart = tokens = masked = 0
    for pieces, picked in chosen(source_of(text, str(words), wordpiece), wordpiece, 20):
        tokens, masked = tokens + len(pieces), masked + int(picked.sum())
        for first, second in zip(range(len(pieces) - 1), range(1, len(pieces)), strict=True):
            pair = pieces[first] + pieces[second]
            if pair in ("中国", "日本", "可以", "以及", "由于", "北京", "历史", "使用") and not segmenter.begins(pair)[1]:
                both = picked[first] and picked[second]
                together, apart = together + both, apart + (picked[first] != picked[second])
    assert 0.14 < masked / tokens < 0.17  # 15 %, and one at least of each short sequence
    # The pair may belong to a longer word or stand at a border by chance (发展中|国家): few do.
    assert together > 20
    assert apart < 0.1 * together
