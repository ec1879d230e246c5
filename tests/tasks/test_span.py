from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.vocabulary import Flags
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, UsageError
from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.labelled.squad import read_predictions
from bertkit.metrics.squad import squad_scores
from bertkit.notices import collecting
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named
from bertkit.tasks.span import Span
from bertkit.tasks.span_decoding import best_spans
from bertkit.tasks.span_examples import SpanExample, SpanSettings
from bertkit.tasks.span_reach import span_of

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [
    "paris",
    "is",
    "big",
    "where",
    "key",
    "made",
    "it",
    "cafe",
    "##s",
    ".",
    "?",
    "[",
    "]",
    "sep",
    "mask",
    "価",
    "格",
    "は",
    "。",
]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS]
KIND = Span()
TASK = task_named("squad")
LABELS = Labels(names=(), problem="")


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece(VOCABULARY, Flags(lowercase=True))


def row(context: str, question: str = "where?", *, identity: str = "q", **more: Any) -> QuestionRow:
    return QuestionRow(id=identity, question=question, context=context, **more)


def gold(context: str, text: str, start: int | None = None, **more: Any) -> QuestionRow:
    return row(context, answers=(Answer(text, context.index(text) if start is None else start),), **more)


def letters(count: int) -> str:
    return " ".join(LETTERS[i % 26] for i in range(count))


def encoded(rows: list[QuestionRow], wordpiece: WordPiece, *, training: bool = False, segments: int = 2, **how: Any) -> Any:
    return KIND.encode(rows, wordpiece, LABELS, SpanSettings(**how), segments=segments, for_training=training)


def flat(examples: list[SpanExample], value: float = -9.0) -> list[np.ndarray]:
    return [np.full((example.length, 2), value, dtype=np.float32) for example in examples]


# --- windows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stride", "expected"),
    [(0, [(0, 114), (114, 43)]), (113, [(start, 114) for start in range(44)]), (64, [(0, 114), (50, 107)])],
)
def test_a_question_of_11_on_a_context_of_157(wordpiece: WordPiece, stride: int, expected: list[tuple[int, int]]) -> None:
    asked = row(letters(157), letters(11))
    examples = encoded([asked], wordpiece, max_length=128, stride=stride).examples
    ids = wordpiece.encode([asked.context])[0]
    assert [len(example.trusted) for example in examples] == [size for _, size in expected]
    for example, (start, size) in zip(examples, expected, strict=True):
        assert example.ids[13 : 13 + size].tolist() == ids[start : start + size].tolist()
        assert (example.ids[0], example.ids[12], example.ids[-1]) == (2, 3, 3)
        assert example.types.tolist() == [0] * 13 + [1] * (size + 1)
        assert example.length <= 128
    assert sum(int(example.trusted.sum()) for example in examples) == 157  # each token is trusted once


@pytest.mark.parametrize("stride", [114, 120, 128, -1])
def test_a_stride_that_leaves_tokens_out_of_some_row_is_refused(wordpiece: WordPiece, stride: int) -> None:
    rows = [row("a b", "c"), row(letters(157), letters(11))]
    with pytest.raises(UsageError, match=rf"stride of {stride} .*--max-length 128 with room for 114"):
        encoded(rows, wordpiece, max_length=128, stride=stride)


def test_contexts_that_fit_ask_nothing_of_the_stride(wordpiece: WordPiece) -> None:
    assert len(encoded([row(letters(100))], wordpiece, max_length=128, stride=128).examples) == 1


def test_a_long_question_keeps_64_tokens(wordpiece: WordPiece) -> None:
    result = encoded([row(letters(157), letters(300))], wordpiece, max_length=128, stride=0)
    assert [len(example.trusted) for example in result.examples] == [61, 61, 35]
    assert [example.first for example in result.examples] == [66, 66, 66]
    assert any("1 questions were cut to their first 64 tokens, 236" in line for line in result.coverage.lines())


def test_no_room_for_the_context_is_refused(wordpiece: WordPiece) -> None:
    with pytest.raises(UsageError, match="no room"):
        encoded([row("a b", letters(30))], wordpiece, max_length=33)


def test_special_token_text_is_text_and_segments_may_be_one(wordpiece: WordPiece) -> None:
    example = encoded([row("see [SEP] it", "[MASK]?")], wordpiece, segments=1).examples[0]
    tokens = [VOCABULARY[i] for i in example.ids]
    assert tokens.count("[SEP]") == 2
    assert "[MASK]" not in tokens
    assert tokens[1:4] == ["[", "mask", "]"]
    assert set(example.types.tolist()) == {0}


@pytest.mark.slow  # importing transformers takes seconds
def test_windows_are_those_of_transformers(wordpiece: WordPiece, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    wordpiece.save(tmp_path, max_length=512)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    context = "  Café's big.\r\n価格は。 key  made it. " + letters(40)
    batch = theirs(
        ["where is it?"],
        [context],
        truncation="only_second",
        max_length=24,
        stride=5,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    ours = encoded([row(context, "where is it?")], wordpiece, max_length=24, stride=5).examples
    assert len(ours) == len(batch["input_ids"]) >= 4
    for index, example in enumerate(ours):
        assert example.ids.tolist() == batch["input_ids"][index]
        assert example.types.tolist() == batch["token_type_ids"][index]
        offsets = [
            pair for pair, part in zip(batch["offset_mapping"][index], batch.sequence_ids(index), strict=True) if part == 1
        ]
        assert [tuple(pair) for pair in example.offsets.tolist()] == offsets


# --- training ----------------------------------------------------------------------------------------------------------


def test_targets_stand_at_the_answer_in_every_window_that_holds_it(wordpiece: WordPiece) -> None:
    context = letters(20) + " paris is big " + letters(20)
    asked = gold(context, "paris is")
    examples = encoded([asked], wordpiece, training=True, max_length=21, stride=8).examples
    held = [example for example in examples if example.target != (0, 0)]
    assert len(held) >= 2
    assert len(held) < len(examples)
    for example in held:
        assert example.target is not None
        start, end = example.target
        assert [VOCABULARY[i] for i in example.ids[start : end + 1]] == ["paris", "is"]


def test_a_batch_has_targets_as_places_in_their_sequences(wordpiece: WordPiece) -> None:
    rows = [gold("a paris b", "paris"), gold("x y z is", "is"), row("a", impossible=True)]
    examples = encoded(rows, wordpiece, training=True).examples
    batch = KIND.collate(examples)
    assert batch.starts is not None
    assert batch.ends is not None
    assert batch.starts.tolist() == batch.ends.tolist() == [5, 7, 0]
    assert (batch.tokens, batch.counts()) == (sum(example.length for example in examples), {"span": 3})
    assert batch.to("cpu").packed.input_ids.dtype == torch.int64
    blank = KIND.collate(encoded(rows, wordpiece).examples)
    assert blank.starts is None
    assert blank.counts() == {"span": 0}


def test_rows_that_cannot_be_trained_on_are_left_out_and_listed(wordpiece: WordPiece) -> None:
    rows = [
        gold("Paris is Paris", "Paris", 3, identity="astray"),
        gold("a \u200e b", "\u200e", identity="deleted"),
        gold(letters(30), letters(30), identity="long"),
        row("a b", identity="null", impossible=True),
        gold("a paris", "paris", identity="good"),
    ]
    result = encoded(rows, wordpiece, training=True, max_length=20, stride=3, null_answers=False)
    assert {example.row for example in result.examples} == {4}
    assert result.coverage.skipped == 4
    note = " ".join(result.coverage.lines())
    assert all(name in note for name in ("astray", "deleted", "long", "null"))
    assert "good" not in note
    # they are still asked, and with questions of 2.0 about, the one without answer is trained on
    assert {example.row for example in encoded(rows, wordpiece, max_length=20, stride=3).examples} == {0, 1, 2, 3, 4}
    assert {example.row for example in encoded(rows, wordpiece, training=True, max_length=20, stride=3).examples} == {3, 4}


def test_span_of_characters() -> None:
    offsets = np.array([[2, 7], [8, 10], [10, 11], [14, 17]], dtype=np.int32)
    assert span_of(offsets, 2, 7) == (0, 0)
    assert span_of(offsets, 3, 9) == (0, 1)
    assert span_of(offsets, 0, 2) is None
    assert span_of(offsets, 11, 14) is None
    assert span_of(offsets, 7, 8) is None
    assert span_of(offsets, 10, 15) == (2, 3)


# --- decoding ----------------------------------------------------------------------------------------------------------


def by_hand(rows: list[QuestionRow], examples: list[SpanExample], outputs: list[np.ndarray], longest: int) -> dict[str, Any]:
    """The best span and null score of each row by looking at every pair of every window, one by one."""
    found: dict[str, Any] = {}
    for number, asked in enumerate(rows):
        best, null = (-np.inf, ""), np.inf
        for example, output in zip(examples, outputs, strict=True):
            if example.row != number:
                continue
            null = min(null, float(output[0, 0]) + float(output[0, 1]))
            for i in range(len(example.trusted)):
                for j in range(i, min(len(example.trusted), i + longest)):
                    if example.trusted[i]:
                        score = float(output[example.first + i, 0]) + float(output[example.first + j, 1])
                        if score > best[0]:
                            best = (score, asked.context[example.offsets[i, 0] : example.offsets[j, 1]])
        found[asked.id] = (*best, null)
    return found


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 12), st.booleans())
def test_decoding_finds_what_looking_at_every_pair_finds(seed: int, longest: int, nulls: bool) -> None:
    wordpiece = WordPiece(VOCABULARY, Flags(lowercase=True))
    rng = np.random.default_rng(seed)
    rows = [row(letters(int(rng.integers(1, 60))), letters(int(rng.integers(0, 9))), identity=str(i)) for i in range(3)]
    how = {"max_length": 24, "stride": int(rng.integers(0, 11)), "max_answer_length": longest, "null_answers": nulls}
    examples = encoded(rows, wordpiece, **how).examples
    outputs = [rng.normal(size=(example.length, 2)).astype(np.float32) for example in examples]
    expected = by_hand(rows, examples, outputs, longest)
    for said in KIND.decode(outputs, examples, rows, LABELS, SpanSettings(**how)):
        score, text, null = expected[said.id]
        if nulls:
            assert said.more["best_text"] == text
            assert said.more["null_odds"] == pytest.approx(null - score)
            assert said.value == ("" if null > score else text)
            assert said.score == pytest.approx(max(null, score))
        else:
            assert (said.value, said.score) == (text, pytest.approx(score))
            assert "null_odds" not in said.more


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 15), st.integers(1, 8), st.integers(1, 40))
def test_the_n_best_pairs_are_the_n_best_of_all_pairs(seed: int, size: int, longest: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    start, end = rng.integers(-2, 3, size=(2, size)).astype(np.float64)  # many equals
    trusted = rng.random(size) < 0.7
    every = [(i, j) for i in range(size) if trusted[i] for j in range(i, min(size, i + longest))]
    every.sort(key=lambda pair: -(start[pair[0]] + end[pair[1]]))  # stable: equals by place
    assert best_spans(start, end, trusted, longest, count) == every[:count]


def test_the_order_of_outputs_and_rows_is_kept(wordpiece: WordPiece) -> None:
    rows = [row("paris is big", identity="a"), row("key made it", identity="b")]
    examples = encoded(rows, wordpiece).examples
    outputs = flat(examples)
    outputs[0][examples[0].first + 2] = 5
    outputs[1][examples[1].first] = 5
    assert [said.value for said in KIND.decode(outputs, examples, rows, LABELS, SpanSettings())] == ["big", "key"]


@pytest.mark.parametrize("text", ["Café", "Café's", "Café's  BIG.", "BIG.\r\n価格", "価格は", "。", "Key", "格は。 Key"])
def test_answers_are_the_contexts_own_letters(wordpiece: WordPiece, text: str) -> None:
    context = "  Café's  BIG.\r\n価格は。 Key"
    rows = [row(context, "   Where?")]
    examples = encoded(rows, wordpiece).examples
    start = context.index(text)
    outputs = flat(examples)
    starts, ends = examples[0].offsets.T.tolist()
    outputs[0][examples[0].first + starts.index(start), 0] = 5
    outputs[0][examples[0].first + ends.index(start + len(text)), 1] = 5
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings())[0]
    assert said.value == text
    assert (said.more["start"], said.more["end"]) == (start, start + len(text))


def test_a_span_starts_where_its_token_is_trusted(wordpiece: WordPiece) -> None:
    rows = [row(letters(20))]
    examples = encoded(rows, wordpiece, max_length=18, stride=6).examples
    outputs = flat(examples, 0.0)
    untrusted = int(np.flatnonzero(~examples[0].trusted)[0])
    outputs[0][examples[0].first + untrusted] = 50  # a high score from a window that knows the token badly
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings(max_length=18, stride=6))[0]
    assert said.score == 50.0  # as the end of a span, not as its start
    assert said.value != LETTERS[untrusted]
    assert said.value.endswith(LETTERS[untrusted])


# --- null answers ------------------------------------------------------------------------------------------------------


def test_null_wins_everywhere(wordpiece: WordPiece) -> None:
    rows = [gold("paris is big", "big", identity="has"), row("paris is big", identity="none", impossible=True)]
    examples = encoded(rows, wordpiece).examples
    outputs = flat(examples, 0.0)
    for example, output in zip(examples, outputs, strict=True):
        output[0] = 9
        output[example.first + 1] = 1
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings())
    assert [one.value for one in said] == ["", ""]
    scores = KIND.score(said, rows, TASK, LABELS).values
    assert (scores["NoAns_exact"], scores["HasAns_exact"]) == (100.0, 0.0)
    assert scores["best_exact"] == 50.0
    # read as 1.1 the best legal span is the answer
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings(null_answers=False))
    assert [one.value for one in said] == ["is", "is"]


def test_data_of_2_0_may_have_no_answer_whatever_the_rows_at_hand_have(wordpiece: WordPiece) -> None:
    rows = [gold("paris is big", "big", nullable=True)]
    examples = encoded(rows, wordpiece).examples
    outputs = flat(examples)
    outputs[0][0] = 9
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings())
    assert said[0].value == ""
    assert KIND.score(said, rows, TASK, LABELS).values["HasAns_exact"] == 0.0
    # predictions of another system, which has no odds
    assert "HasAns_exact" in KIND.score([Prediction(id="q", value="big")], rows, TASK, LABELS).values


def test_spans_that_are_too_long_do_not_compete(wordpiece: WordPiece) -> None:
    rows = [row(letters(60), identity="none", impossible=True)]
    examples = encoded(rows, wordpiece).examples
    outputs = flat(examples, 0.0)
    first = examples[0].first
    outputs[0][first, 0] = 20
    outputs[0][first + 30, 1] = 20  # 31 tokens: never
    outputs[0][0] = 11
    outputs[0][first + 29, 1] = 1
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings())[0]
    assert said.value == ""
    assert said.more["best_text"] == letters(30)
    assert said.more["null_odds"] == pytest.approx(22 - 21)
    assert KIND.decode(outputs, examples, rows, LABELS, SpanSettings(null_threshold=1.5))[0].value == letters(30)


def test_the_null_score_is_the_lowest_over_the_windows(wordpiece: WordPiece) -> None:
    rows = [row(letters(30), identity="none", impossible=True)]
    examples = encoded(rows, wordpiece, max_length=18, stride=4).examples
    outputs = flat(examples, 0.0)
    for place, output in enumerate(outputs):
        output[0] = 5 - place
    said = KIND.decode(outputs, examples, rows, LABELS, SpanSettings(max_length=18, stride=4))[0]
    assert said.more["null_odds"] == 2 * (5 - (len(examples) - 1)) - 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_named_by_its_question(wordpiece: WordPiece, bad: float) -> None:
    rows = [row("a b", identity="fine"), row("a b", identity="sick")]
    examples = encoded(rows, wordpiece).examples
    outputs = flat(examples)
    outputs[1][3, 1] = bad
    with pytest.raises(DataError, match="question sick") as caught:
        KIND.decode(outputs, examples, rows, LABELS, SpanSettings())
    assert caught.value.exit_code == 3


def test_a_context_without_tokens_is_asked_and_answered_by_nothing(wordpiece: WordPiece) -> None:
    rows = [row(" \u200e\n", identity="empty"), row("a b", identity="none", impossible=True)]
    examples = encoded(rows, wordpiece).examples
    said = KIND.decode(flat(examples), examples, rows, LABELS, SpanSettings())
    assert said[0].value == ""
    assert said[0].more["nbest"] == [{"text": "", "probability": 1.0, "start_logit": -9.0, "end_logit": -9.0}]
    json.dumps([dict(one.more) for one in said], allow_nan=False)


def test_the_n_best_list_has_distinct_texts_and_shares_that_sum_to_one(wordpiece: WordPiece) -> None:
    rows = [row("a a a b", identity="none", impossible=True)]
    examples = encoded(rows, wordpiece).examples
    rng = np.random.default_rng(0)
    outputs = [rng.normal(size=(example.length, 2)).astype(np.float32) for example in examples]
    best = KIND.decode(outputs, examples, rows, LABELS, SpanSettings())[0].more["nbest"]
    texts = [entry["text"] for entry in best]
    assert len(set(texts)) == len(texts)
    assert set(texts) == {"", "a", "a a", "a a a", "b", "a b", "a a b", "a a a b"}
    assert sum(entry["probability"] for entry in best) == pytest.approx(1.0)
    sums = [entry["start_logit"] + entry["end_logit"] for entry in best]
    assert sums == sorted(sums, reverse=True)
    few = KIND.decode(outputs, examples, rows, LABELS, SpanSettings(n_best=2))[0].more["nbest"]
    assert [entry["text"] for entry in few if entry["text"]] == [text for text in texts if text][:2]


# --- scores, files, reach ----------------------------------------------------------------------------------------------


def test_scores_and_official_files(tmp_path: Path) -> None:
    rows = [
        gold("paris is big", "big", identity="a"),
        gold("paris is big", "paris is", identity="b"),
        row("x", identity="c", labelled=False),
    ]
    said = [Prediction(id=r.id, value=v, more={"nbest": []}) for r, v in zip(rows, ["The BIG", "paris", "x"], strict=True)]
    scores = KIND.score(said, rows, TASK, LABELS)
    assert scores.values == {"exact": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}
    assert (scores.primary, scores.examples) == ("f1", 2)
    low, high = scores.interval or (0, 0)
    assert low <= scores.values["f1"] <= high  # type: ignore[operator]
    paths = KIND.write_official(tmp_path, said, rows, TASK, "validation")
    assert [path.name for path in paths] == ["predictions.json", "nbest_predictions.json"]
    assert read_predictions(paths[0]) == {"a": "The BIG", "b": "paris", "c": "x"}
    back = KIND.read_official(paths[0], rows, TASK, LABELS)
    assert KIND.score(back, rows, TASK, LABELS).values == scores.values
    paths[0].write_text('{"a": "big"}')
    with collecting() as heard:
        back = KIND.read_official(paths[0], rows, TASK, LABELS)
    assert [notice.kind for notice in heard] == ["missing-predictions"]
    assert KIND.score(back, rows, TASK, LABELS).values == {"exact": 50.0, "f1": 50.0}
    with pytest.raises(DataError, match="none of the questions"):
        KIND.read_official(paths[0], rows[1:], TASK, LABELS)
    with pytest.raises(DataError, match="nothing to score"):
        KIND.score(said[2:], rows[2:], TASK, LABELS)


def test_null_odds_give_the_best_threshold_apart(tmp_path: Path) -> None:
    rows = [gold("big", "big", identity="a"), row("big", identity="b", impossible=True)]
    said = [
        Prediction(id="a", value="", more={"null_odds": 1.0, "best_text": "big", "nbest": []}),
        Prediction(id="b", value="", more={"null_odds": 2.0, "best_text": "big", "nbest": []}),
    ]
    values = KIND.score(said, rows, TASK, LABELS).values
    assert values["exact"] == 50.0  # threshold 0 takes both away
    assert (values["best_exact"], values["best_exact_thresh"]) == (100.0, 1.0)
    paths = KIND.write_official(tmp_path, said, rows, TASK, "validation")
    assert json.loads(paths[-1].read_text()) == {"a": 1.0, "b": 2.0}
    assert paths[-1].name == "null_odds.json"


def test_what_windows_and_lengths_put_out_of_reach_is_counted(wordpiece: WordPiece) -> None:
    rows = [
        gold("paris is big", "is", identity="fine"),
        gold("cafes", "cafe", identity="inside a word"),
        gold(letters(40), letters(40), identity="too long"),
        gold("a \u200e b", "\u200e", identity="deleted"),
        gold("Paris is Paris", "Paris", 3, identity="astray"),
    ]
    # a vocabulary with cafes as one word, so that cafe is only part of a token
    coverage = encoded(rows, WordPiece([*VOCABULARY, "cafes"], Flags(lowercase=True))).coverage
    assert coverage.unreachable == 3
    assert coverage.ceilings["exact"] == pytest.approx(100 * 2 / 5)
    part = 2 * (30 / 30) * (30 / 40) / (1 + 30 / 40)
    # one of the 40 letters is the article a, in gold twice, in the best 30 tokens once or twice: the F1 is near to that
    assert coverage.ceilings["f1"] == pytest.approx(100 * (2 + part) / 5, abs=1.0)
    assert any("out of reach" in line for line in coverage.lines())
    assert encoded(rows[:1], wordpiece).coverage.lines() == []


def test_windows_without_overlap_put_answers_across_their_border_out_of_reach(wordpiece: WordPiece) -> None:
    rows = [gold(letters(26), "k l m n", identity="across")]
    assert encoded(rows, wordpiece, max_length=18, stride=0).coverage.unreachable == 1
    assert encoded(rows, wordpiece, max_length=18, stride=9).coverage.unreachable == 0


@pytest.mark.parametrize(("overlap", "seed"), [(0, 1), (3, 2), (9, 3)])
def test_the_ceiling_is_what_the_best_of_all_legal_spans_scores(wordpiece: WordPiece, overlap: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(12):
        words = [LETTERS[i] for i in rng.integers(1, 26, size=30)]
        start = int(rng.integers(0, 24))
        text = " ".join(words[start : start + int(rng.integers(1, 9))])
        rows.append(gold(" ".join(words), text, identity=str(number)))
    how = {"max_length": 18, "stride": overlap, "max_answer_length": 6}
    result = encoded(rows, wordpiece, **how)
    golds = {asked.id: [answer.text for answer in asked.answers] for asked in rows}
    reached = []
    for number, asked in enumerate(rows):
        texts = [
            asked.context[example.offsets[i, 0] : example.offsets[j, 1]]
            for example in result.examples
            if example.row == number
            for i in np.flatnonzero(example.trusted)
            for j in range(i, min(i + 6, len(example.trusted)))
        ]
        one = {asked.id: golds[asked.id]}
        reached.append(max(squad_scores(one, {asked.id: text}, version=1)["exact"] for text in texts))
    assert result.coverage.unreachable == sum(best < 100 for best in reached)
    if result.coverage.unreachable:
        assert result.coverage.ceilings["exact"] == pytest.approx(sum(reached) / len(reached))


@pytest.mark.data
@pytest.mark.slow
def test_real_questions_and_the_answers_that_perfect_logits_give(real_data: Path) -> None:
    folder = real_data / "data"
    wordpiece = load_wordpiece(folder / "vocab/bert-base-uncased-vocab.txt", cased=False)
    for name in ("dev-v1.1-1000", "dev-v2.0-1000"):
        rows, _ = KIND.read(folder / f"squad/{name}.json", TASK)
        result = KIND.encode(rows, wordpiece, LABELS, SpanSettings(max_length=200, stride=80))
        assert len(result.examples) > len(rows)
        outputs = flat(result.examples, 0.0)
        for example, output in zip(result.examples, outputs, strict=True):
            asked = rows[example.row]
            output[0] = 1
            for answer in asked.answers:
                span = span_of(example.offsets, answer.start, answer.start + len(answer.text))
                if (
                    span
                    and example.offsets[span[0], 0] == answer.start
                    and example.offsets[span[1], 1] == answer.start + len(answer.text)
                ):
                    output[example.first + span[0], 0] = output[example.first + span[1], 1] = 9
                    break
        said = KIND.decode(outputs, result.examples, rows, LABELS, SpanSettings(max_length=200, stride=80))
        scores = KIND.score(said, rows, TASK, LABELS).values
        assert scores["exact"] is not None
        assert scores["exact"] > 99.0
        assert scores["exact"] <= result.coverage.ceilings.get("exact", 100.0)
        assert all(one.value in rows[number].context for number, one in enumerate(said))
