from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

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


# | stands where a sentence must be cut, and nowhere else may it be.
RULES = {
    "abbreviations": "Gen. Lee and Prof. Wu met at No. 5 St. James St.| They left.",
    "abbreviations that may end one": "It grew in the U.S.| The rest went to Acme Inc. President Smith.",
    "abbreviations are words in small letters": "He studied art.| Smith painted.| See art. 5 of the law.",
    "initials": "It was J. B. Bury, George W. Bush and John P.| The others had gone.",
    "numerals are no initials": "It fell in World War I.| Germany rose again under Pius V.| In 1602 it was moved.",
    "decimals and versions": "It is 3.14 or .5 or v2.0.1 of example.com.| 100 of them are left.",
    "quotations": '"Is it?" he asked.| "No."| “It is ‘so.’”| (He left.)| It is called "V".| Next came it.',
    "quotations of two sentences": 'He said, "I came.| I saw."| Then he left.',
    "titles with marks": 'It was "Tora! Tora! Tora!" that won.| "Who is Afraid?" (1962) did not.',
    "ellipses": "He waited ... and left.| Then ...| Nothing came.| We must... [...]| So it is.",
    "an ellipsis is no sentence": "He has lied. [...]| I did not expect it.| We must defend it. ...",
    "brackets": "He came (by air. By sea it was too far) and left.| (They stayed.| They slept.)| Day came.",
    "a bracket that never closes": "He came (by air.| By sea it was too far.",
    "lists": "It is shown.| (a) The left one is small.| (2) The right one is not.",
    "a list's number": "1. Wash it.| Dry it.",
    "footnotes and pages": "It was the first.[a]| In 1999 came more.[12]| It is large.:75–76| The others are not.",
    "references": "It is so (Gal. 1:6; xxiv. 5; Wu et al. (2003)).| See Appl. Microbiol. Biotechnol. 77: 751-762",
    "a lost space": "They stutter.|The report of Node.Js and Mul.Apin is unclear.",
    "a dash before who said it": "All men are equal.|—Declaration of Independence",
    "Chinese ends": "你好。|真的吗？|走吧！|第一；|第二……|（他走了。）|“他说：‘好。’”|完。。",
    "Chinese quotations go on": "他喊道「好！」，然后走了。|他说“不是。”。|「好。」|「不好。」|他作“书”；|又作“表”。",
    "Chinese brackets": "德文（拉丁：甲；希腊：乙）是一种语言。|他（生于京。卒于沪）来了。|（详见上文。|又见下文。）",
    "Chinese with Latin": "他用BERT。|BERT很大。|GPU有3.5万个，T.S.艾略特不用。| iPhone也可以。|「OK。」|Yes!",
    "narrow marks in Chinese": "你好!|他说?|约翰.亚当斯走了.",
}


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str) -> None:
    expected = [sentence.strip() for sentence in RULES[rule].split("|")]
    assert split_sentences(RULES[rule].replace("|", "")) == expected


@pytest.mark.parametrize("half", ["development", "check"])
@pytest.mark.parametrize("wiki", ["enwiki", "zhwiki"])
def test_hand_checked_boundaries(real_data: Path, wiki: str, half: str) -> None:
    """At most 2 % of the boundaries of real paragraphs are set wrongly or missed; the text itself is not kept here."""
    gold = json.loads(Path(__file__).with_name("sentence_starts.json").read_text(encoding="utf-8"))[wiki][half]
    wrong = boundaries = 0
    with (real_data / f"data/corpora/{wiki}-train.txt").open("rb") as file:
        for offset, length, digest, right in gold:
            file.seek(offset)
            data = file.read(length)
            assert hashlib.sha256(data).hexdigest()[:16] == digest, f"the paragraph at byte {offset} is another text"
            paragraph, starts, at = data.decode(), [], 0
            for sentence in split_sentences(paragraph):
                starts.append(paragraph.index(sentence, at))
                at = starts[-1] + len(sentence)
            wrong += len(set(starts[1:]) ^ set(right))
            boundaries += len(right)
    assert boundaries >= 200
    assert wrong <= 0.02 * boundaries


def test_blank_paragraphs_have_no_sentence() -> None:
    assert split_sentences("") == split_sentences(" \t\u3000") == []


MARKS = st.text(alphabet=st.sampled_from(list("aB1 .!?…。！？；，：:」』”\"')（）([]—\u3000\n中文DrMs")), max_size=80)


@settings(deadline=None)
@given(MARKS | st.text(max_size=60))
def test_nothing_is_lost(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    at = 0
    for sentence in sentences:  # each is a slice, in order, and not blank
        assert sentence == sentence.strip() != ""
        at = paragraph.index(sentence, at) + len(sentence)


REPEATED = [
    ".",
    ".)",
    '."',
    "…",
    "。」",
    ". ",
    " ",
    "a",
    "(a. ",
    "（中。",
    "A. 1-1.",
    "[a]",
    ".[a]",
    ":7",
    ".:7",
    ". [",
    "Oh! ",
    "—.",
    ". 1",
]


@pytest.mark.parametrize("text", REPEATED)
def test_time_grows_with_the_text_alone(text: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        split_sentences("Start. " + text * times + "x")
        return time.process_time() - started

    assert seconds(200_000) < 40 * (seconds(10_000) + 0.01)  # a square would take 400 times as long
