from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.sentences import split_sentences

CASES = [
    ["Dr. Smith went to Washington, D.C.", "He met J. R. R. Tolkien.", "It cost $3.14.", "The end."],
    ["Mr. and Mrs. Smith sued the U.S. government.", "Acme Inc. in 1990 was large.", "It was 1999.", "Then came 2000."],
    ['"Really?" she asked.', '"Yes!"', "He left...", "Then came the U.S. Army at 5 p.m.", "The rest, e.g. Bob, slept."],
    ["1. Wash the rice.", "2. Boil it.", "What?!", "No way.", "(See Fig. 3.)", "It ended (badly).", "[Then] it began."],
    ["He wrote “I am here.”", "Nobody answered.", "It is No. 5 of vol. 2 pp. 10–20 there.", "Visit example.com today."],
    ["他说：「好。」，然后走了。", "你好！", "真的吗？", "是的……", "对；", "“走吧！”", "她说，价格为3.14万。"],
    ["BERT is good.", "模型很大。", "版本3.5发布了。", "See the paper by Devlin et al. from 2019.", "完了。"],
    ["你好!", "他说了.", "Then it ended."],
]


@pytest.mark.parametrize("sentences", CASES, ids=lambda s: s[0][:12])
def test_english_chinese_and_mixed(sentences: list[str]) -> None:
    chinese = [len(a) > 0 and a[-1] > "\u2fff" for a in sentences]
    text = "".join(s + ("" if wide or s == "你好!" else " ") for s, wide in zip(sentences, chinese, strict=True))
    assert split_sentences(text) == sentences


def test_blank_paragraphs_have_no_sentence() -> None:
    assert split_sentences("") == split_sentences(" \t\u3000") == []


MARKS = st.text(alphabet=st.sampled_from(list("aB1 .!?…。！？；，」』”\"')(\u3000\n中文DrMs")), max_size=80)


@settings(deadline=None)
@given(MARKS | st.text(max_size=60))
def test_nothing_is_lost(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    at = 0
    for sentence in sentences:  # each is a slice, in order, and not blank
        assert sentence == sentence.strip() != ""
        at = paragraph.index(sentence, at) + len(sentence)


@pytest.mark.parametrize("text", [".", ".)", '."', "…", "。」", ". ", " ", "a"])
def test_time_grows_with_the_text_alone(text: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        split_sentences("Start. " + text * times + "x")
        return time.process_time() - started

    assert seconds(200_000) < 40 * (seconds(10_000) + 0.01)  # a square would take 400 times as long
