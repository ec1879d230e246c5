"""Questions at the edges: windows of one token, contexts of one word, answers at either end, texts of any characters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.vocabulary import Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import UsageError
from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.tasks.labels import Labels
from bertkit.tasks.span import Span
from bertkit.tasks.span_examples import SpanSettings

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = [*["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], *LETTERS, *(f"##{letter}" for letter in LETTERS), *"?.é京東"]
WORDPIECE = WordPiece(VOCABULARY, Flags(lowercase=True))
KIND, LABELS = Span(), Labels(names=(), problem="")


def asked(context: str, text: str | None = None, *, last: bool = False, question: str = "a") -> QuestionRow:
    start = -1 if text is None else context.rindex(text) if last else context.index(text)
    answers = () if text is None else (Answer(text, start),)
    return QuestionRow(id="q", question=question, context=context, answers=answers, labelled=text is not None)


def pointed(row: QuestionRow, how: SpanSettings) -> list[np.ndarray]:
    """Outputs that point at the row's answer, from every window that holds an end of it."""
    (answer,) = row.answers
    outputs = []
    for example in KIND.encode([row], WORDPIECE, LABELS, how).examples:
        output = np.zeros((example.length, 2), dtype=np.float32)
        for place, (start, end) in enumerate(example.offsets.tolist()):
            output[example.first + place] = (9 * (start == answer.start), 9 * (end == answer.start + len(answer.text)))
        outputs.append(output)
    return outputs


def answered(row: QuestionRow, outputs: list[np.ndarray], **how: Any) -> Any:
    settings_ = SpanSettings(**how)
    examples = KIND.encode([row], WORDPIECE, LABELS, settings_).examples
    return KIND.decode(outputs, examples, [row], LABELS, settings_)[0]


def test_windows_of_one_token() -> None:
    how = SpanSettings(max_length=5, stride=0)
    row = asked("x yz w", "w")
    result = KIND.encode([row], WORDPIECE, LABELS, how)
    assert [len(example.trusted) for example in result.examples] == [1, 1, 1, 1]
    assert all(example.trusted.all() for example in result.examples)
    assert answered(row, pointed(row, how), max_length=5, stride=0).value == "w"
    # y ##z is an answer of two tokens, which no window of one holds.
    wide = KIND.encode([asked("x yz w", "yz")], WORDPIECE, LABELS, how)
    assert wide.coverage.unreachable == 1
    assert not KIND.encode([asked("x yz w", "yz")], WORDPIECE, LABELS, how, for_training=True).examples
    with pytest.raises(UsageError, match="stride of 1"):
        KIND.encode([row], WORDPIECE, LABELS, SpanSettings(max_length=5, stride=1))


def test_a_question_longer_than_the_window_is_one_error() -> None:
    with pytest.raises(UsageError, match="question of 40 tokens leaves its context no room in --max-length 32") as caught:
        KIND.encode([asked("x", "x", question="a " * 40)], WORDPIECE, LABELS, SpanSettings(max_length=32, stride=4))
    assert caught.value.exit_code == 2
    shorter = SpanSettings(max_length=32, stride=4, max_question_length=20)  # what then helps
    assert KIND.encode([asked("x", "x", question="a " * 40)], WORDPIECE, LABELS, shorter).examples[0].length == 24


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("le cafe\u0301 noir", "cafe\u0301"),
        ("le cafe\u0301, noir", "cafe\u0301"),
        ("le cafe\u0301\u0323", "cafe\u0301\u0323"),
        ("a\u030aland e\u0301", "e\u0301"),
        ("le caf\u00e9 noir", "caf\u00e9"),
        ("x \u6771\ufe00\u4eac", "\u6771\ufe00"),  # a variant of a Chinese character, which is a word
    ],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_accents_that_stand_apart_are_kept(context: str, answer: str, lowercase: bool) -> None:
    """Uncased, a mark behind its letter is stripped; cased it is a piece of its own or, as here, makes its word unknown."""
    wordpiece = WordPiece([*VOCABULARY, "\u6771\ufe00"], Flags(lowercase=lowercase))
    row, how = asked(context, answer), SpanSettings()
    encoded = KIND.encode([row], wordpiece, LABELS, how)
    assert (encoded.coverage.unreachable, encoded.coverage.ceilings) == (0, {})
    (example,) = encoded.examples
    offsets = example.offsets.tolist()
    assert all(before[1] <= after[0] for before, after in pairwise(offsets))
    (trained,) = KIND.encode([row], wordpiece, LABELS, how, for_training=True).examples
    output = np.zeros((example.length, 2), dtype=np.float32)
    assert trained.target is not None
    output[trained.target[0], 0] = output[trained.target[1], 1] = 9
    said = KIND.decode([output], [example], [row], LABELS, how)[0]
    assert said.value == answer
    assert row.context[said.more["start"] : said.more["end"]] == answer


@pytest.mark.parametrize("context", ["word", " word ", "\n\tword", "京"])
def test_a_context_of_one_word(context: str) -> None:
    row = asked(context, context.strip())
    said = answered(row, pointed(row, SpanSettings()))
    assert said.value == context.strip()
    assert context[said.more["start"] : said.more["end"]] == said.value
    (example,) = KIND.encode([row], WORDPIECE, LABELS, SpanSettings(), for_training=True).examples
    assert example.target == (3, 2 + len(WORDPIECE.encode([context])[0]))


@pytest.mark.parametrize("context", ["", " ", "\u200e", "\n\r\n"])
def test_a_blank_context_has_no_answer_and_trains_nothing(context: str) -> None:
    row = asked(context)
    said = answered(row, [np.zeros((4, 2), dtype=np.float32)])
    assert said.value == ""
    assert "start" not in said.more
    blank = QuestionRow(id="q", question="a", context=context, answers=(Answer("x", 0),))
    assert KIND.encode([blank], WORDPIECE, LABELS, SpanSettings(), for_training=True).coverage.skipped == 1


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [0, 3, 8])
def test_an_answer_at_either_end(last: bool, stride: int) -> None:
    how = {"max_length": 14, "stride": stride}
    row = asked("xy b c d e f g h i j k l m n o p q r s t u v xy", "xy", last=last)
    said = answered(row, pointed(row, SpanSettings(**how)), **how)
    start = len(row.context) - 2 if last else 0
    assert (said.value, said.more["start"], said.more["end"]) == ("xy", start, start + 2)
    examples = KIND.encode([row], WORDPIECE, LABELS, SpanSettings(**how), for_training=True).examples
    held = [example for example in examples if example.target != (0, 0)]
    assert held == [examples[-1] if last else examples[0]]
    assert held[0].target == ((len(held[0].ids) - 3, len(held[0].ids) - 2) if last else (3, 4))


def test_rows_without_gold_are_not_trained_on_as_unanswerable() -> None:
    rows = [asked("x y"), QuestionRow(id="n", question="a", context="x", impossible=True)]
    result = KIND.encode(rows, WORDPIECE, LABELS, SpanSettings(), for_training=True)
    assert [example.row for example in result.examples] == [1]
    assert result.coverage.skipped == 1


_CONTEXTS = st.text("ab é́É京東x.?\u200e\u00a0\u3000\n\r\t😀İß", max_size=40)


@settings(deadline=None, max_examples=80)
@given(_CONTEXTS, st.integers(0, 2**31), st.integers(6, 14), st.integers(1, 6))
def test_every_answer_is_a_piece_of_its_context(context: str, seed: int, room: int, longest: int) -> None:
    how = SpanSettings(max_length=room, stride=(room - 4) // 2, max_answer_length=longest)
    row = asked(context)
    examples = KIND.encode([row], WORDPIECE, LABELS, how).examples
    rng = np.random.default_rng(seed)
    outputs = [rng.normal(size=(example.length, 2)).astype(np.float32) for example in examples]
    said = KIND.decode(outputs, examples, [row], LABELS, how)[0]
    spans = {
        (float(output[example.first + i, 0]) + float(output[example.first + j, 1])): (
            example.offsets[i, 0],
            example.offsets[j, 1],
        )
        for example, output in zip(examples, outputs, strict=True)
        for i in np.flatnonzero(example.trusted)
        for j in range(i, min(i + longest, len(example.trusted)))
    }
    if not spans:
        assert said.value == ""
        return
    assert said.value == context[said.more["start"] : said.more["end"]] != ""
    assert (said.more["start"], said.more["end"]) == spans[max(spans)]
    assert all(entry["text"] in context for entry in said.more["nbest"])
