"""Small data sets as the hub has them: the repositories, configurations, splits, columns and names of classes of the data of
every classification task, hand-made. Each text says where it stands: ``"mnli train premise 0"``.

Their cards are those of nyu-mll/glue, stanfordnlp/snli and clue/clue (dataset_info, configs); lansinuote/ChnSentiCorp has none,
but a dataset_infos.json of older days.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import yaml

_SPLITS = ("train", "validation", "test")
_NLI = ("entailment", "neutral", "contradiction")
_CHINESE_NLI = ("neutral", "entailment", "contradiction")
_NEWS = ("100", "101", "102", "103", "104", "106", "107", "108", "109", "110", "112", "113", "114", "115", "116")


@dataclass(frozen=True, kw_only=True)
class HubSet:
    """The data of one task.

    Attributes:
        repo: Its repository.
        folder: The folder of its Parquet files, the configuration's name; None: it has one configuration, in ``data``.
        texts: Columns of texts; ``keyword`` holds lists of them.
        names: Of the classes, in the order of their numbers; none: labels are plain numbers.
        splits: Those there are.
        hidden: Splits whose labels are hidden (-1).
        ids: Other columns of numbers, 0, 10, 20 …
        rows: Of each split.
    """

    repo: str
    folder: str | None
    texts: tuple[str, ...]
    names: tuple[str, ...] = ()
    splits: tuple[str, ...] = _SPLITS
    hidden: tuple[str, ...] = ("test",)
    ids: tuple[str, ...] = ("idx",)
    rows: int = 3


def _glue(config: str, *texts: str, **more: Any) -> HubSet:
    return HubSet(repo="nyu-mll/glue", folder=config, texts=texts, **more)


def _clue(config: str, *texts: str, **more: Any) -> HubSet:
    return HubSet(repo="clue/clue", folder=config, texts=texts, **more)


SETS = {
    "cola": _glue("cola", "sentence", names=("unacceptable", "acceptable")),
    "sst2": _glue("sst2", "sentence", names=("negative", "positive")),
    "mrpc": _glue("mrpc", "sentence1", "sentence2", names=("not_equivalent", "equivalent")),
    "qqp": _glue("qqp", "question1", "question2", names=("not_duplicate", "duplicate")),
    "stsb": _glue("stsb", "sentence1", "sentence2"),
    "mnli": _glue(
        "mnli",
        "premise",
        "hypothesis",
        names=_NLI,
        splits=("train", "validation_matched", "validation_mismatched", "test_matched", "test_mismatched"),
        hidden=("test_matched", "test_mismatched"),
    ),
    "qnli": _glue("qnli", "question", "sentence", names=("entailment", "not_entailment")),
    "rte": _glue("rte", "sentence1", "sentence2", names=("entailment", "not_entailment")),
    "wnli": _glue("wnli", "sentence1", "sentence2", names=("not_entailment", "entailment")),
    "ax": _glue("ax", "premise", "hypothesis", names=_NLI, splits=("test",)),
    "snli": HubSet(
        repo="stanfordnlp/snli", folder="plain_text", texts=("premise", "hypothesis"), names=_NLI, hidden=(), ids=(), rows=4
    ),
    "chnsenticorp": HubSet(repo="lansinuote/ChnSentiCorp", folder=None, texts=("text",), hidden=(), ids=()),
    "tnews": _clue("tnews", "sentence", names=_NEWS),
    "afqmc": _clue("afqmc", "sentence1", "sentence2", names=("0", "1")),
    "ocnli": _clue("ocnli", "sentence1", "sentence2", names=_CHINESE_NLI),
    "cmnli": _clue("cmnli", "sentence1", "sentence2", names=_CHINESE_NLI),
    "iflytek": _clue("iflytek", "sentence", names=tuple(str(number) for number in range(119))),
    "csl": _clue("csl", "abst", "keyword", names=("0", "1"), ids=("idx", "corpus_id")),
}


def label_of(task: str, split: str, row: int) -> int | float:
    """The label as the hub has it: the classes in turn, -1 where it is hidden or SNLI's annotators did not agree."""
    made = SETS[task]
    if task == "stsb":
        return -1.0 if split in made.hidden else 0.5 + row
    if split in made.hidden or (task == "snli" and row == 3):
        return -1
    return row % (len(made.names) or 2)


def text_of(task: str, split: str, column: str, row: int) -> Any:
    """The text of a cell."""
    text = f"{task} {split} {column} {row}"
    return [f"{text} a", "é 中"] if column == "keyword" else text


def write_sets(root: Path, *tasks: str) -> Path:
    """Writes the repositories of some tasks' data, or of all, below ``root/datasets``."""
    cards: dict[str, list[str]] = {}
    for task in tasks or SETS:
        made = SETS[task]
        cards.setdefault(made.repo, []).append(task)
        for split in made.splits:
            path = root / "datasets" / made.repo / _file(made, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(_table(task, split), path)
    for repo, those in cards.items():
        folder = root / "datasets" / repo
        if SETS[those[0]].folder is None:
            (folder / "dataset_infos.json").write_text(json.dumps({repo.replace("/", "--"): _old_info(*those)}), encoding="utf-8")
        else:
            (folder / "README.md").write_text(f"---\n{yaml.safe_dump(_card(those))}---\n", encoding="utf-8")
    return root


def _file(made: HubSet, split: str) -> str:
    if made.folder is None:
        return f"data/{split}-00000-of-00001-5372924f059fe767.parquet"
    return f"{made.folder}/{split}-00000-of-00001.parquet"


def _table(task: str, split: str) -> pyarrow.Table:
    made = SETS[task]
    numbers = range(made.rows)
    columns = {name: pyarrow.array([text_of(task, split, name, row) for row in numbers]) for name in made.texts}
    label = pyarrow.float32() if task == "stsb" else pyarrow.int64()
    columns["label"] = pyarrow.array([label_of(task, split, row) for row in numbers], label)
    columns |= {name: pyarrow.array([10 * row for row in numbers], pyarrow.int32()) for name in made.ids}
    features = {name: _feature(name, task) for name in columns}
    return pyarrow.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def _feature(column: str, task: str) -> dict[str, Any]:
    """As the metadata of the hub's Parquet files have it."""
    made = SETS[task]
    if column == "label" and made.names:
        return {"names": list(made.names), "_type": "ClassLabel"}
    plain = {"dtype": _dtype(column, task), "_type": "Value"}
    return {"feature": plain, "_type": "Sequence"} if column == "keyword" else plain


def _dtype(column: str, task: str) -> str:
    if column in SETS[task].texts:
        return "string"
    return "int32" if column != "label" else "float32" if task == "stsb" else "int64"


def _old_info(task: str) -> dict[str, Any]:
    made = SETS[task]
    splits = {split: {"name": split, "num_bytes": 0, "num_examples": made.rows} for split in made.splits}
    return {"features": {name: _feature(name, task) for name in (*made.texts, "label")}, "splits": splits}


def _card(tasks: list[str]) -> dict[str, Any]:
    infos, configs = [], []
    for task in tasks:
        made = SETS[task]
        features: list[dict[str, Any]] = []
        for column in (*made.texts, "label", *made.ids):
            if column == "label" and made.names:
                names = {str(number): name for number, name in enumerate(made.names)}
                features.append({"name": column, "dtype": {"class_label": {"names": names}}})
            else:
                features.append({"name": column, "sequence" if column == "keyword" else "dtype": _dtype(column, task)})
        splits = [{"name": split, "num_bytes": 0, "num_examples": made.rows} for split in made.splits]
        infos.append({"config_name": made.folder, "features": features, "splits": splits})
        files = [{"split": split, "path": f"{made.folder}/{split}-*"} for split in made.splits]
        configs.append({"config_name": made.folder, "data_files": files})
    return {"dataset_info": infos, "configs": configs}
