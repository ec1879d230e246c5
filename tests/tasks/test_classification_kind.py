"""The kind ``classification``: labels by name, sequences as transformers lays them, figures and files as the official ones."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, ModelError, SettingsError
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import Place, TextRow
from bertkit.notices import collecting
from bertkit.tasks.classification import Classification, ClassificationSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import read_predictions, write_predictions
from bertkit.tasks.registry import task_named
from bertkit.tasks.task import Task

KIND = Classification()
MNLI, COLA, OWN = task_named("mnli"), task_named("cola"), task_named("classification")
STSB = replace(OWN, name="stsb", problem="regression", metrics=("spearman", "pearson"), columns=Columns(kind="number"))
TAGS = replace(OWN, name="tags", problem="multi_label_classification", metrics=("f1_micro", "f1_macro", "accuracy"))
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "##e", "[", "]", "mask", "sep"]


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory: pytest.TempPathFactory) -> WordPiece:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return load_wordpiece(path, cased=False)


def rows_of(labels: Sequence[str | float | tuple[str, ...] | None], text: str = "a") -> list[TextRow]:
    return [TextRow(id=str(n), text=text, label=label, place=Place("own.csv", n + 2)) for n, label in enumerate(labels)]


def decoded(
    outputs: Sequence[Sequence[float]], rows: Sequence[TextRow], labels: Labels, wordpiece: WordPiece
) -> list[Prediction]:
    examples = KIND.encode(rows, wordpiece, labels, ClassificationSettings()).examples
    return KIND.decode([np.array(output, np.float32) for output in outputs], examples, rows, labels, ClassificationSettings())


# labels by name


def test_mnli_labels_are_matched_by_name_without_case(wordpiece: WordPiece) -> None:
    model = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]
    rows = rows_of(["entailment", "neutral", "contradiction"] * 3)
    with collecting() as said:
        labels = KIND.labels(rows, MNLI, model, for_training=False)
    assert labels.names == ("contradiction", "neutral", "entailment")
    assert said == []
    head = {"contradiction": [5.0, 0, 0], "neutral": [0, 5.0, 0], "entailment": [0, 0, 5.0]}
    predictions = decoded([head[str(row.label)] for row in rows], rows, labels, wordpiece)
    assert KIND.score(predictions, rows, MNLI, labels).values["accuracy"] == 1.0


def test_generic_labels_take_the_tasks_order_and_that_is_said() -> None:
    with collecting() as said:
        labels = KIND.labels([], MNLI, ["LABEL_0", "LABEL_1", "LABEL_2"], for_training=False)
    assert labels.names == ("entailment", "neutral", "contradiction")
    assert [notice.kind for notice in said] == ["label-order"]
    assert "LABEL_1 = neutral" in said[0].message


def test_another_count_or_other_names_are_refused_but_trained_anew() -> None:
    for model in (["LABEL_0", "LABEL_1", "LABEL_2"], ["no", "yes"], ["acceptable", "acceptable"]):
        with pytest.raises(ModelError, match=r"cola has 2|outputs have one name") as caught:
            KIND.labels([], COLA, model, for_training=False)
        assert caught.value.exit_code == 3
        with collecting() as said:
            labels = KIND.labels(rows_of(["acceptable"]), COLA, model, for_training=True)
        assert (labels.names, labels.new_head) == (("unacceptable", "acceptable"), True)
        assert [notice.kind for notice in said] == ["new-head"]


@pytest.mark.parametrize(
    ("given", "notices"),
    [
        ([("a;b",), ("b;c",), ("a",)], ["labels", "one-label-each"]),
        ([("a|b",), ("b|c", "d|a")], ["labels"]),
        ([("a",), ("b;",)], ["labels"]),
    ],
)
def test_labels_that_something_else_parts_are_told(given: list[tuple[str, ...]], notices: list[str]) -> None:
    with collecting() as said:
        KIND.labels(rows_of(given), TAGS, None, for_training=True)
    assert [notice.kind for notice in said] == notices


def test_two_labels_against_three_outputs_are_refused() -> None:
    with pytest.raises(ModelError, match="3 labels"):
        KIND.labels(rows_of(["0", "1", "1"]), OWN, ["LABEL_0", "LABEL_1", "LABEL_2"], for_training=False)


def test_own_labels_come_from_the_training_rows_and_later_from_the_model() -> None:
    with collecting() as said:
        labels = KIND.labels(rows_of(["10", "9", "9"]), OWN, None, for_training=True)
    assert (labels.names, labels.new_head, labels.positive) == (("9", "10"), True, "10")
    assert [notice.kind for notice in said] == ["labels", "positive-label"]
    assert KIND.labels(rows_of(["neg", "pos"]), OWN, ["POS", "neg"], for_training=True).names == ("pos", "neg")
    assert KIND.labels([], OWN, ["x", "y", "z"], for_training=False).names == ("x", "y", "z")
    assert KIND.labels(rows_of(["yes", "no"]), OWN, None, for_training=True).positive == "yes"


def test_training_rows_need_labels_and_two_of_them() -> None:
    with pytest.raises(DataError, match="no label") as caught:
        KIND.labels(rows_of(["x", None, "y"]), OWN, None, for_training=True)
    assert caught.value.where == "own.csv, line 3"
    with pytest.raises(DataError, match="two labels at least; the training rows have 'x'"):
        KIND.labels(rows_of(["x", "x"]), OWN, None, for_training=True)


def test_a_label_of_dev_that_train_does_not_have_is_named_by_row(wordpiece: WordPiece) -> None:
    labels = Labels(names=("x", "y"))
    for for_training in (True, False):
        with pytest.raises(DataError, match="'z' is none of x, y") as caught:
            KIND.encode(rows_of(["x", "z"]), wordpiece, labels, ClassificationSettings(), for_training=for_training)
        assert caught.value.where == "own.csv, line 3"
    assert [e.label for e in KIND.encode(rows_of(["Y", "x"]), wordpiece, labels, ClassificationSettings()).examples] == [1, 0]


# sequences


def test_special_tokens_in_a_text_are_text(wordpiece: WordPiece) -> None:
    row = TextRow(id="0", text="a [MASK] b", pair="[SEP]")
    example = KIND.encode([row], wordpiece, Labels(names=("x", "y")), ClassificationSettings()).examples[0]
    assert [WORDS[i] for i in example.ids] == ["[CLS]", "a", "[", "mask", "]", "b", "[SEP]", "[", "sep", "]", "[SEP]"]
    assert example.types.tolist() == [0] * 7 + [1] * 4


def pieces(count: int) -> str:
    return " ".join("abcd"[n % 4] for n in range(count))


def test_pairs_are_cut_longest_first_as_transformers_cuts_them(wordpiece: WordPiece) -> None:
    from tokenizers import Tokenizer, processors

    reference = Tokenizer.from_str(wordpiece.to_tokenizer_json())
    reference.post_processor = processors.BertProcessing(("[SEP]", wordpiece.sep_id), ("[CLS]", wordpiece.cls_id))
    labels = Labels(names=("x", "y"))
    for max_length in (5, 6, 9, 12):
        reference.enable_truncation(max_length, strategy="longest_first")
        rows = [TextRow(id="", text=pieces(a), pair=pieces(b)) for a in range(12) for b in range(12)]
        encoded = KIND.encode(rows, wordpiece, labels, ClassificationSettings(max_length=max_length))
        theirs = [reference.encode(row.text, row.pair) for row in rows]
        assert [example.ids.tolist() for example in encoded.examples] == [one.ids for one in theirs]
        assert [example.types.tolist() for example in encoded.examples] == [one.type_ids for one in theirs]
        too_long = [a + b + 3 - max_length for a in range(12) for b in range(12) if a + b + 3 > max_length]
        assert (encoded.coverage.cut_rows, encoded.coverage.cut_tokens) == (len(too_long), sum(too_long))


def test_a_cut_text_is_counted_and_said(wordpiece: WordPiece) -> None:
    rows = [TextRow(id="", text=pieces(n)) for n in (3, 4, 9)]
    encoded = KIND.encode(rows, wordpiece, Labels(names=("x", "y")), ClassificationSettings(max_length=6))
    assert [example.length for example in encoded.examples] == [5, 6, 6]
    assert encoded.coverage.lines() == ["1 of 3 texts were cut to the length, 5 tokens lost; raise --max-length."]


def test_a_model_with_one_segment(wordpiece: WordPiece) -> None:
    rows = [TextRow(id="", text="a", pair="b")] * 2
    with collecting() as said:
        encoded = KIND.encode(rows, wordpiece, Labels(names=("x", "y")), ClassificationSettings(), segments=1)
    assert all(example.types.tolist() == [0] * 5 for example in encoded.examples)
    assert [notice.kind for notice in said] == ["one-segment"]


def test_lengths_without_room_are_refused(wordpiece: WordPiece) -> None:
    with pytest.raises(SettingsError, match="no room"):
        KIND.encode(
            [TextRow(id="", text="a", pair="b")], wordpiece, Labels(names=("x", "y")), ClassificationSettings(max_length=4)
        )
    with pytest.raises(SettingsError, match="max_length is 600, but the model has 512 positions"):
        ClassificationSettings(max_length=600).check_positions(512)


def test_batches_of_every_problem(wordpiece: WordPiece) -> None:
    def batch(rows: list[TextRow], labels: Labels) -> torch.Tensor | None:
        made = KIND.collate(KIND.encode(rows, wordpiece, labels, ClassificationSettings()).examples)
        assert made.packed.sequences == len(rows)
        assert made.tokens == 3 * len(rows)
        assert made.counts() == {"classification": 0 if made.labels is None else made.labels.numel()}
        moved = made.to("cpu", non_blocking=True).labels
        assert moved is made.labels or (moved is not None and made.labels is not None and torch.equal(moved, made.labels))
        return made.labels

    single = batch(rows_of(["y", "x"]), Labels(names=("x", "y")))
    assert single is not None
    assert (single.dtype, single.tolist()) == (torch.int64, [1, 0])
    number = batch(rows_of([2.5, 1.0]), Labels(names=("score",), problem="regression"))
    assert number is not None
    assert (number.dtype, number.tolist()) == (torch.float32, [2.5, 1.0])
    several = batch(rows_of([("y", "x"), ()]), Labels(names=("x", "y", "z"), problem="multi_label_classification"))
    assert several is not None
    assert (several.dtype, several.tolist()) == (torch.float32, [[1, 1, 0], [0, 0, 0]])
    assert batch(rows_of(["y", None]), Labels(names=("x", "y"))) is None


# predictions and figures


def test_a_prediction_has_its_probability_and_those_of_all(wordpiece: WordPiece) -> None:
    (one,) = decoded([[0.0, math.log(3)]], rows_of(["x"]), Labels(names=("x", "y")), wordpiece)
    assert (one.id, one.value, one.gold, one.score) == ("0", "y", "x", pytest.approx(0.75))
    assert one.more["probabilities"] == {"x": pytest.approx(0.25), "y": pytest.approx(0.75)}


def test_an_output_that_is_no_number_names_the_row(wordpiece: WordPiece) -> None:
    with pytest.raises(DataError, match="not a number") as caught:
        decoded([[0.0, 1.0], [math.nan, 0.0]], rows_of(["x", "y"]), Labels(names=("x", "y")), wordpiece)
    assert caught.value.where == "own.csv, line 3"


def test_figures_of_cola_with_their_interval(wordpiece: WordPiece) -> None:
    random = np.random.default_rng(0)
    rows = rows_of([("unacceptable", "acceptable")[n] for n in random.integers(2, size=400)])
    outputs = [[0.0, (1 if row.label == "acceptable" else -1) + random.normal() * 2] for row in rows]
    labels = KIND.labels([], COLA, ["LABEL_0", "LABEL_1"], for_training=False)
    scores = KIND.score(decoded(outputs, rows, labels, wordpiece), rows, COLA, labels)
    from sklearn.metrics import f1_score, matthews_corrcoef

    gold, predicted = [row.label for row in rows], [("unacceptable", "acceptable")[int(o[1] > 0)] for o in outputs]
    assert scores.best == pytest.approx(matthews_corrcoef(gold, predicted))
    assert scores.values["f1"] == pytest.approx(f1_score(gold, predicted, pos_label="acceptable"))
    assert (scores.primary, scores.examples) == ("matthews", 400)
    assert scores.interval is not None
    assert scores.interval[0] < scores.best < scores.interval[1]
    # About ±1.96 / sqrt(N), the width of a correlation's interval, times a factor below one for r above zero.
    assert 0.12 < scores.interval[1] - scores.interval[0] < 2 * 1.96 / math.sqrt(400) + 0.02


@pytest.mark.parametrize("primary", ["accuracy", "f1", "f1_macro", "f1_micro", "matthews"])
def test_every_primary_figure_of_labels_has_an_interval_around_it(primary: str, wordpiece: WordPiece) -> None:
    task = replace(OWN, metrics=(primary,))
    rows = rows_of(["x", "y"] * 100)
    outputs = [[float(row.label == "x" or n % 5 == 0), 0.5] for n, row in enumerate(rows)]
    labels = Labels(names=("x", "y"), positive="y")
    scores = KIND.score(decoded(outputs, rows, labels, wordpiece), rows, task, labels)
    assert scores.interval is not None
    assert scores.best is not None
    assert scores.interval[0] < scores.best < scores.interval[1]
    assert scores.interval == KIND.score(decoded(outputs, rows, labels, wordpiece), rows, task, labels).interval


def test_numbers_that_never_vary_have_no_correlation(wordpiece: WordPiece) -> None:
    rows = rows_of([1.0, 2.0, 3.0])
    labels = KIND.labels(rows, STSB, None, for_training=True)
    assert labels == Labels(names=("score",), problem="regression", new_head=True)
    with collecting() as said:
        scores = KIND.score(decoded([[2.0]] * 3, rows, labels, wordpiece), rows, STSB, labels)
    assert (scores.values, scores.best, scores.interval) == ({"spearman": None, "pearson": None}, None, None)
    assert {notice.kind for notice in said} == {"undefined-score"}
    better = KIND.score(decoded([[1.0], [2.5], [2.0]], rows, labels, wordpiece), rows, STSB, labels)
    assert better.best == pytest.approx(0.5)


def test_several_labels(wordpiece: WordPiece) -> None:
    rows = rows_of([("x", "z"), (), ("y",), ("z",)])
    labels = KIND.labels(rows, TAGS, None, for_training=True)
    assert labels.names == ("x", "y", "z")
    predictions = decoded([[1, -1, 2], [-1, -1, -1], [1, 1, -1], [-1, -1, -1]], rows, labels, wordpiece)
    assert [one.value for one in predictions] == [["x", "z"], [], ["x", "y"], []]
    scores = KIND.score(predictions, rows, TAGS, labels)
    # hits 3 of 4 golds and 4 guesses; by label x 2/3, y 1, z 2/3
    assert scores.values == {
        "f1_micro": pytest.approx(6 / 8),
        "f1_macro": pytest.approx((2 / 3 + 1 + 2 / 3) / 3),
        "accuracy": 0.5,
    }


def test_nothing_to_score_and_rows_without_gold(wordpiece: WordPiece) -> None:
    labels = Labels(names=("x", "y"))
    with pytest.raises(DataError, match="empty"):
        KIND.score([], [], OWN, labels)
    rows = rows_of(["x", None])
    with pytest.raises(DataError, match="no label") as caught:
        KIND.score(decoded([[0, 1]] * 2, rows, labels, wordpiece), rows, OWN, labels)
    assert caught.value.where == "own.csv, line 3"
    assert KIND.has_gold(rows)
    assert not KIND.has_gold(rows_of([None]))


def test_windows_of_outputs_in_another_order_find_their_rows(wordpiece: WordPiece) -> None:
    rows, labels = rows_of(["x", "y"]), Labels(names=("x", "y"))
    first, second = KIND.encode(rows, wordpiece, labels, ClassificationSettings()).examples
    predictions = KIND.decode(
        [np.array([0.0, 1.0]), np.array([1.0, 0.0])], [second, first], rows, labels, ClassificationSettings()
    )
    assert [one.value for one in predictions] == ["x", "y"]


# files


def test_predictions_as_json_lines(tmp_path: Path, wordpiece: WordPiece) -> None:
    labels = Labels(names=("é", "中"))
    predictions = decoded([[0.0, 1.0], [2.0, 0.0]], rows_of(["é", None]), labels, wordpiece)
    path = tmp_path / "predictions.jsonl"
    write_predictions(path, predictions)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert "中" in lines[0]
    assert list(json.loads(lines[0])) == ["id", "gold", "prediction", "score", "probabilities"]
    assert json.loads(lines[1])["gold"] is None
    assert read_predictions(path) == predictions
    path.write_text(lines[0] + "\n{}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_predictions(path)
    assert caught.value.where == f"{path}, line 2"


@pytest.mark.parametrize(
    ("task", "part", "name", "values"),
    [(COLA, "test", "CoLA.tsv", "10"), (MNLI, "test_mismatched", "MNLI-mm.tsv", ["neutral", "entailment"])],
)
def test_glues_own_prediction_files(tmp_path: Path, task: Task, part: str, name: str, values: Sequence[str]) -> None:
    given = ["acceptable", "unacceptable"] if task is COLA else ["neutral", "entailment"]
    predictions = [Prediction(id=str(n + 7), value=value) for n, value in enumerate(given)]
    assert KIND.write_official(tmp_path, predictions, [], task, part) == [tmp_path / name]
    assert (tmp_path / name).read_bytes().decode() == f"index\tprediction\n0\t{values[0]}\n1\t{values[1]}\n"
    assert KIND.write_official(tmp_path, predictions, [], task, "validation") == []
