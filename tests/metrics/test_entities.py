from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.labelled.conll import read_conll
from bertkit.labelled.tags import Entity, entities, iob2, recognise, split_tag, strict_entities, to_iob2
from bertkit.metrics.entities import entity_scores, resampled_entities


def tags_of(prefixes: str) -> st.SearchStrategy[list[list[str]]]:
    tag = st.one_of(
        st.just("O"), st.builds(lambda p, t: f"{p}-{t}", st.sampled_from(prefixes), st.sampled_from(["X", "Y", "Z-Z"]))
    )
    return st.lists(st.lists(tag, min_size=1, max_size=12), min_size=1, max_size=5)


def paired(prefixes: str) -> st.SearchStrategy[tuple[list[list[str]], list[list[str]]]]:
    def beside(gold: list[list[str]]) -> st.SearchStrategy[tuple[list[list[str]], list[list[str]]]]:
        tag = st.one_of(
            st.just("O"), st.builds(lambda p, t: f"{p}-{t}", st.sampled_from(prefixes), st.sampled_from(["X", "Y", "Z-Z"]))
        )
        changed = [st.tuples(*(st.one_of(st.just(old), tag) for old in row)).map(list) for row in gold]
        return st.tuples(st.just(gold), st.tuples(*changed).map(list))

    return tags_of(prefixes).flatmap(beside)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["I-LOC", "B-LOC", "O", "I-PER", "I-PER"], [(0, 1, "LOC"), (1, 2, "LOC"), (3, 5, "PER")]),
        (["B-A", "I-B", "I-B"], [(0, 1, "A"), (1, 3, "B")]),
        (["O", "I-A", "O"], [(1, 2, "A")]),
        (["S-A", "S-A", "B-A", "E-A", "B-A", "I-A", "E-A"], [(0, 1, "A"), (1, 2, "A"), (2, 4, "A"), (4, 7, "A")]),
        (["E-A", "I-A"], [(0, 1, "A"), (1, 2, "A")]),
        (["B-A", "S-A"], [(0, 1, "A"), (1, 2, "A")]),
        (["S-A", "I-A"], [(0, 1, "A"), (1, 2, "A")]),
        (["B", "I", "O", "B"], [(0, 2, ""), (3, 4, "")]),
        ([], []),
    ],
)
def test_reading_as_conlleval_does(tags: list[str], expected: list[tuple[int, int, str]]) -> None:
    assert entities(tags) == expected


def test_strict_reading_takes_lawful_iob2_alone() -> None:
    assert strict_entities(["I-A", "I-A"]) == []
    assert strict_entities(["B-A", "I-A", "I-B", "B-B", "B-B"]) == [(0, 2, "A"), (3, 4, "B"), (4, 5, "B")]


def test_a_type_keeps_its_own_hyphens() -> None:
    assert split_tag("B-PER-X.NOM") == ("B", "PER-X.NOM")
    assert split_tag("O") == ("O", "")


def test_beginning_with_i_counts_for_conlleval_and_not_strictly() -> None:
    scores = entity_scores([["B-PH", "I-PH"]], [["I-PH", "I-PH"]]).metrics()
    assert (scores["f1"], scores["f1_strict"]) == (1.0, 0.0)
    assert scores["accuracy"] == 0.5


def test_hand_counts_by_type() -> None:
    gold = [["B-A", "I-A", "O", "B-B"], ["B-A", "O"]]
    found = [["B-A", "O", "O", "B-B"], ["B-A", "B-B"]]
    scores = entity_scores(gold, found)
    assert (scores.total.gold, scores.total.found, scores.total.correct) == (3, 4, 2)
    assert scores.metrics()["precision"] == 0.5
    assert scores.metrics()["recall"] == pytest.approx(2 / 3)
    assert scores.metrics()["f1"] == pytest.approx(4 / 7)
    assert scores.types["A"].f1 == 0.5
    assert (scores.types["B"].precision, scores.types["B"].recall) == (0.5, 1.0)
    assert scores.accuracy == pytest.approx(4 / 6)


def test_nothing_found_is_zero_and_nothing_to_find_is_undefined() -> None:
    assert entity_scores([["B-A"]], [["O"]]).metrics() | {"accuracy": 0} == {
        "precision": 0.0, "recall": 0.0, "f1": 0.0, "f1_strict": 0.0, "accuracy": 0
    }  # fmt: skip
    assert entity_scores([["O"]], [["O"]]).metrics()["f1"] is None
    assert entity_scores([["O"]], [["B-A"]]).metrics()["f1"] == 0.0


def test_sides_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="sentences"):
        entity_scores([["O"]], [])
    with pytest.raises(ValueError, match="sentence 0 has 2"):
        entity_scores([["O", "O"]], [["O"]])


def seqeval(gold: Any, found: Any, **how: Any) -> tuple[float, float, float]:
    from seqeval.metrics import f1_score, precision_score, recall_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(score(gold, found, zero_division=0, **how) for score in (precision_score, recall_score, f1_score))  # type: ignore[return-value]


@pytest.mark.slow  # importing seqeval takes seconds
@settings(deadline=None, max_examples=80)
@given(st.one_of(paired("BI"), paired("I"), paired("BIES")))
def test_any_tags_score_as_in_seqeval(both: tuple[list[list[str]], list[list[str]]]) -> None:
    gold, found = both
    scores = entity_scores(gold, found).metrics()
    ours = [scores["precision"] or 0.0, scores["recall"] or 0.0, scores["f1"] or 0.0]
    assert ours == pytest.approx(list(seqeval(gold, found)))


@pytest.mark.slow  # importing seqeval takes seconds
@settings(deadline=None, max_examples=80)
@given(paired("BI"))
def test_any_tags_score_strictly_as_in_seqeval(both: tuple[list[list[str]], list[list[str]]]) -> None:
    from seqeval.scheme import IOB2

    gold, found = both
    assert (entity_scores(gold, found).strict.f1 or 0.0) == pytest.approx(seqeval(gold, found, mode="strict", scheme=IOB2)[2])


LAWFUL = {
    "IOBES": lambda kind, words: [f"S-{kind}"] if words == 1 else [f"B-{kind}", *[f"I-{kind}"] * (words - 2), f"E-{kind}"],
    "BILOU": lambda kind, words: [f"U-{kind}"] if words == 1 else [f"B-{kind}", *[f"I-{kind}"] * (words - 2), f"L-{kind}"],
    "BMES": lambda kind, words: [f"S-{kind}"] if words == 1 else [f"B-{kind}", *[f"M-{kind}"] * (words - 2), f"E-{kind}"],
}


def runs() -> st.SearchStrategy[list[tuple[str, int]]]:
    """Sentences as runs of words: outside, or an entity of a type."""
    return st.lists(st.tuples(st.sampled_from(["", "X", "Y-Z"]), st.integers(1, 4)), max_size=6)


def spelled(sentence: list[tuple[str, int]], scheme: str) -> list[str]:
    return [tag for kind, words in sentence for tag in (LAWFUL[scheme](kind, words) if kind else ["O"] * words)]


@settings(deadline=None)
@given(runs(), st.sampled_from(sorted(LAWFUL)))
def test_every_spelling_of_iobes_names_the_same_entities(sentence: list[tuple[str, int]], scheme: str) -> None:
    tags = spelled(sentence, scheme)
    place, expected = 0, []
    for kind, words in sentence:
        expected += [(place, place + words, kind)] if kind else []
        place += words
    assert entities(tags) == entities(to_iob2(tags)) == strict_entities(to_iob2(tags)) == expected


@pytest.mark.slow  # importing seqeval takes seconds
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(runs(), st.randoms()), min_size=1, max_size=5), st.sampled_from(["IOBES", "BILOU"]))
def test_iobes_and_bilou_score_as_in_seqeval(sentences: list[tuple[Any, Any]], scheme: str) -> None:
    from seqeval.scheme import BILOU, IOBES

    gold = [spelled(sentence, scheme) for sentence, _ in sentences]
    # Lawful predictions, so that seqeval's strict reading has nothing to leave out: other runs of as many words.
    found = []
    for (_, chance), tags in zip(sentences, gold, strict=True):
        left, made = len(tags), []
        while left:
            words = chance.randint(1, min(3, left))
            made.append((chance.choice(["", "X", "Y-Z"]), words))
            left -= words
        found.append(tags if chance.random() < 0.4 else spelled(made, scheme))
    scores = entity_scores(gold, found).metrics()
    ours = [scores["precision"] or 0.0, scores["recall"] or 0.0, scores["f1"] or 0.0]
    strict = {"mode": "strict", "scheme": {"IOBES": IOBES, "BILOU": BILOU}[scheme]}
    assert ours == pytest.approx(list(seqeval(gold, found, **strict)))


@given(st.one_of(tags_of("BI"), tags_of("I"), tags_of("BIES")))
def test_iob2_keeps_the_entities_and_is_lawful(sentences: list[list[str]]) -> None:
    for tags in sentences:
        turned = to_iob2(tags)
        assert entities(turned) == entities(tags) == strict_entities(turned)
        assert to_iob2(turned) == turned


def test_iob2_of_a_nameless_type() -> None:
    assert iob2([Entity(0, 2, "")], 3) == ["B", "I", "O"]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        ([["I-A", "B-A", "O"], ["I-B", "I-B"]], ("IOB1", 0)),
        ([["B-A", "I-A", "O"], ["B-B", "B-B"]], ("IOB2", 0)),
        ([["O"], ["I-A", "I-A"], ["I-A", "O", "B-A"]], ("IOB1", 1)),
        ([["B-A", "O", "B-A", "O", "I-A"]], ("IOB2", 1)),
        ([["O", "S-A"], ["B-A", "E-A"]], ("IOBES", 0)),
        ([["O", "U-A"], ["B-A", "I-A", "L-A"]], ("BILOU", 0)),
        ([["O", "S-A"], ["B-A", "M-A", "E-A"]], ("BMES", 0)),
        ([["O", "W-A"], ["B-A", "M-A", "E-A"]], ("BMES", 0)),
        ([["B", "M", "E", "S"]], ("BMES", 0)),
        ([["U", "L", "U"]], ("plain", 0)),
        ([["B-A", "L-A", "E-A"]], ("plain", 0)),
        ([["O", "O"]], ("IOB2", 0)),
        ([], ("IOB2", 0)),
        ([["B", "I", "O"]], ("IOB2", 0)),
        ([["NN", "VBZ", "-LRB-"]], ("plain", 0)),
        ([["O", "PER"]], ("plain", 0)),
    ],
)
def test_recognising_a_scheme(sentences: list[list[str]], expected: tuple[str, int]) -> None:
    assert recognise(sentences) == expected


def test_intervals_surround_the_figure() -> None:
    gold = [["B-A", "O"], ["B-B", "I-B"], ["O", "B-A"], ["B-A", "O"]] * 25
    found = [["B-A", "O"], ["B-B", "O"], ["O", "B-A"], ["O", "B-A"]] * 25
    scores = entity_scores(gold, found).metrics()
    for name, value in scores.items():
        low, high = resampled_entities(gold, found, name).interval(seed=1) or (0.0, 0.0)
        assert value is not None
        assert low < value < high
        assert high - low < 0.3
    with pytest.raises(ValueError, match="no entity figure"):
        resampled_entities(gold, found, "bleu")


@pytest.mark.data
def test_the_real_conllevals_own_lines(real_data: Path) -> None:
    folder = real_data / "data/conll2003/reference"
    rows, _ = read_conll(folder / "unigram-pred-test600.txt")
    gold = [[columns[-1] for columns in row.columns] for row in rows]
    found = [list(row.tags or ()) for row in rows]
    assert entity_scores(gold, found).report() == (folder / "unigram-pred-test600.conlleval.txt").read_text()
