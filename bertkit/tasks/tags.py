"""Tasks of a tag a word as declarations: CoNLL-2003, people's own files, and the Chinese ones, whose words are characters."""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.labelled.hub import CONVERTED
from bertkit.tasks.task import HubData, Part, Task

_FIGURES = ("f1", "precision", "recall", "f1_strict", "accuracy")
_LINES = {"validation": "predictions.txt", "test": "predictions.txt"}
_HUB = Columns(text="tokens", label="ner_tags")
_CHARACTERS = Columns(text="tokens", label="tags", characters=True)
_COLUMN_FILES = ("txt", "conll", "bio", "iob", "tsv")
_RECORD_FILES = ("jsonl", "json", "parquet")


def _parts(**others: tuple[str, ...]) -> tuple[Part, ...]:
    """train.txt, train.conll, …, and the names that the set was published under."""
    named = (("train", ("train",)), ("validation", ("validation", "valid", "dev")), ("test", ("test",)))
    return tuple(
        Part(
            name=name,
            files=(
                *(f"{file}.{ending}" for ending in (*_COLUMN_FILES, *_RECORD_FILES) for file in files),
                *others.get(name, ()),
            ),
        )
        for name, files in named
    )


CONLL2003 = Task(
    name="conll2003",
    title="CoNLL-2003: persons, places, organisations in English news",
    kind="tagging",
    parts=(
        Part(name="train", files=("train.txt", "eng.train")),
        Part(name="validation", files=("valid.txt", "dev.txt", "eng.testa")),
        Part(name="test", files=("test.txt", "eng.testb")),
    ),
    hub=HubData(id="eriktks/conll2003", config="conll2003", revision=CONVERTED),
    columns=_HUB,
    metrics=_FIGURES,
    problem="",
    official=_LINES,
    published=True,
)

TOKENS = Task(
    name="tokens",
    title="Your own sentences with a tag for each word",
    kind="tagging",
    parts=_parts(),
    columns=Columns(text="tokens", label="tags"),
    metrics=_FIGURES,
    problem="",
    official=_LINES,
)

MSRA_NER = Task(
    name="msra_ner",
    title="MSRA: persons, places, organisations in Chinese news",
    kind="tagging",
    parts=_parts(train=("msra_train_bio.txt",), test=("msra_test_bio.txt",)),
    hub=HubData(id="levow/msra_ner", config="msra_ner", revision=CONVERTED, columns=_HUB),
    columns=_CHARACTERS,
    metrics=_FIGURES,
    problem="",
    official=_LINES,
    published=True,
)

WEIBO_NER = Task(
    name="weibo_ner",
    title="Weibo: people, places, organisations in Chinese posts",
    kind="tagging",
    parts=_parts(
        train=("weiboNER_2nd_conll.train", "weiboNER.conll.train"),
        validation=("weiboNER_2nd_conll.dev", "weiboNER.conll.dev"),
        test=("weiboNER_2nd_conll.test", "weiboNER.conll.test"),
    ),
    hub=HubData(id="hltcoe/weibo_ner", config="default", revision=CONVERTED, columns=_HUB),
    columns=_CHARACTERS,
    metrics=_FIGURES,
    problem="",
    official=_LINES,
    published=True,
)

CLUENER = Task(
    name="cluener",
    title="CLUENER: ten types of entities in Chinese news (CLUE)",
    kind="tagging",
    parts=tuple(
        Part(name=name, files=(f"{file}.json", f"{file}.jsonl"))
        for name, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
    ),
    columns=Columns(text="text", label="label", id="id", characters=True),
    metrics=_FIGURES,
    problem="",
    official={"validation": "cluener_predict.json", "test": "cluener_predict.json"},
    published=True,
)

TAGS = (CONLL2003, MSRA_NER, WEIBO_NER, CLUENER, TOKENS)
