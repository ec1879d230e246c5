"""Chinese tasks as declarations: those of CLUE, and ChnSentiCorp.

CLUE's files are JSON lines named ``.json``, hub columns those of ``clue/clue`` (Xu et al. 2020); AFQMC and TNEWS also stand as
columns without a header. Labels are CLUE's own codes, but TNEWS's, which have names (``label_desc``).
"""

from __future__ import annotations

from dataclasses import replace

from bertkit.labelled.columns import Columns
from bertkit.tasks.task import HubData, Part, Task

_NEWS = {
    "100": "news_story", "101": "news_culture", "102": "news_entertainment", "103": "news_sports", "104": "news_finance",
    "106": "news_house", "107": "news_car", "108": "news_edu", "109": "news_tech", "110": "news_military", "112": "news_travel",
    "113": "news_world", "114": "news_stock", "115": "news_agriculture", "116": "news_game",
}  # fmt: skip
_NLI = ("contradiction", "entailment", "neutral")
_BINARY = ("accuracy", "f1", "f1_macro", "matthews")


def _parts(*endings: str, train: tuple[str, ...] = ()) -> tuple[Part, ...]:
    return tuple(
        Part(name=name, files=(*(train if name == "train" else ()), *(f"{file}.{ending}" for ending in endings)))
        for name, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
    )


def _hub(config: str, columns: Columns) -> HubData:
    return HubData(id="clue/clue", config=config, columns=replace(columns, id="idx", positions={}, width=None, plain=False))


_SENTENCES = Columns(text="sentence1", pair="sentence2", id="id")
_AFQMC = replace(_SENTENCES, positions={"text": 0, "pair": 1, "label": 2}, width=3, plain=True)
_TNEWS = Columns(text="sentence", id="id", aliases=_NEWS, positions={"text": 0, "label": 1}, width=2, plain=True)
_IFLYTEK = Columns(text="sentence", id="id")
_NLI_COLUMNS = replace(_SENTENCES, no_label=("-",))  # where the annotators did not agree
_CSL = Columns(text="keyword", pair="abst", id="id", joined=" ")  # in the order of CLUE's own baseline

CHNSENTICORP = Task(
    name="chnsenticorp",
    title="ChnSentiCorp: is the Chinese review positive?",
    kind="classification",
    parts=_parts("tsv"),
    hub=HubData(id="lansinuote/ChnSentiCorp", columns=Columns(names=("negative", "positive"))),
    columns=Columns(text="text_a", id="qid", names=("negative", "positive"), plain=True),
    labels=("negative", "positive"),
    positive="positive",
    metrics=_BINARY,
    settings={"max_length": 256},
)

TNEWS = Task(
    name="tnews",
    title="TNEWS: the section of a Chinese headline, of 15 (CLUE)",
    kind="classification",
    parts=_parts("json", "tsv"),
    hub=_hub("tnews", _TNEWS),
    columns=_TNEWS,
    labels=tuple(_NEWS.values()),
    metrics=("accuracy", "f1_macro"),
    official={"test": "tnews11_predict.json"},
)

AFQMC = Task(
    name="afqmc",
    title="AFQMC: do two Chinese questions to a bank ask the same? (CLUE)",
    kind="classification",
    parts=_parts("json", "txt"),
    hub=_hub("afqmc", _AFQMC),
    columns=_AFQMC,
    labels=("0", "1"),
    positive="1",
    metrics=_BINARY,
    official={"test": "afqmc_predict.json"},
)

OCNLI = Task(
    name="ocnli",
    title="OCNLI: entailment, contradiction or neither? in Chinese (CLUE)",
    kind="classification",
    parts=_parts("json", train=("train.50k.json",)),
    hub=_hub("ocnli", _NLI_COLUMNS),
    columns=_NLI_COLUMNS,
    labels=_NLI,
    metrics=("accuracy", "f1_macro"),
    official={"test": "ocnli_50k_predict.json"},
)

CMNLI = Task(
    name="cmnli",
    title="CMNLI: MNLI and XNLI in Chinese (CLUE)",
    kind="classification",
    parts=_parts("json"),
    hub=_hub("cmnli", _NLI_COLUMNS),
    columns=_NLI_COLUMNS,
    labels=_NLI,
    metrics=("accuracy", "f1_macro"),
    official={"test": "cmnli_predict.json"},
)

IFLYTEK = Task(
    name="iflytek",
    title="IFLYTEK: the kind, of 119, of an app by its description (CLUE)",
    kind="classification",
    parts=_parts("json"),
    hub=_hub("iflytek", _IFLYTEK),
    columns=_IFLYTEK,
    labels=tuple(str(number) for number in range(119)),
    metrics=("accuracy", "f1_macro"),
    settings={"max_length": 256},
    official={"test": "iflytek_predict.json"},
)

CSL = Task(
    name="csl",
    title="CSL: are all of these keywords of the Chinese abstract? (CLUE)",
    kind="classification",
    parts=_parts("json"),
    hub=_hub("csl", _CSL),
    columns=_CSL,
    labels=("0", "1"),
    positive="1",
    metrics=_BINARY,
    settings={"max_length": 256},
    official={"test": "csl_predict.json"},
)

CLUE = (CHNSENTICORP, TNEWS, AFQMC, OCNLI, CMNLI, IFLYTEK, CSL)
