"""SQuAD's files: the questions (1.1 and 2.0, and DRCD's and CMRC2018's in the same shape) and the official predictions.

In comes official JSON or a hub's records, out go :class:`QuestionRow`; contexts, questions and answers stay letter for letter.
Windows, tokens and scores are others'. Format: Rajpurkar et al. 2016 and 2018.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.files import no_character, read_utf8, writing
from bertkit.labelled.rows import Answer, Place, QuestionRow, RowReport


def load_json(path: Path) -> Any:
    """Any JSON file.

    Raises:
        DataError: It is no JSON; file, line and column are named.
    """
    try:
        return json.loads(read_utf8(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"The file is no valid JSON: {error.msg}.",
            where=f"{path}, line {error.lineno}, column {error.colno}",
            hint="Check that the file was downloaded whole.",
        ) from None
    except RecursionError:
        raise DataError("The file is no SQuAD JSON: it is nested too deeply.", where=str(path)) from None


def read_squad(path: Path, *, strict: bool = False) -> tuple[list[QuestionRow], RowReport]:
    """Reads one official file of questions.

    Args:
        path: A file of ``{"version", "data": [{"title", "paragraphs": [{"context", "qas": […]}]}]}``.
        strict: Makes an answer whose ``answer_start`` does not show its text an error; else training skips it later.

    Raises:
        MissingError: There is no such file.
        DataError: It is no such JSON, a field is missing or of a wrong type (its path in the file is named), an id comes
            twice, or there is no question at all.
    """
    report = RowReport()
    seen: set[str] = set()
    rows = of_one_file(list(unique(_questions(load_json(path), str(path)), seen)))
    if not rows:
        raise DataError("There is no question in the file.", where=str(path))
    if strict:
        for row in rows:
            fault = answer_fault(row)
            if fault:
                report.skip(row.place, fault, strict=True)
    report.rows = len(rows)
    return rows, report


def squad_records(records: Iterable[Mapping[str, Any]], *, source: str) -> tuple[list[QuestionRow], RowReport]:
    """Rows of hub data: ``id``, ``title``, ``context``, ``question``, ``answers`` as ``{"text": […], "answer_start": […]}``.

    Raises:
        DataError: A record has not these fields, or an id comes twice.
    """
    report = RowReport()
    found = (squad_record(record, f"{source}, record {n}", Place(source, n, "record")) for n, record in enumerate(records, 1))
    rows = of_one_file(list(unique(found, set())))
    report.rows = len(rows)
    return rows, report


def of_one_file(rows: list[QuestionRow]) -> list[QuestionRow]:
    """The rows, all of them ``nullable`` where one is or has no answer: a fact of the file, whichever of its rows are at hand."""
    return [replace(row, nullable=True) for row in rows] if any(row.nullable or row.impossible for row in rows) else rows


def answer_fault(row: QuestionRow) -> str | None:
    """Why none of a row's answers stands where the file says, or None where one does (or there is none to stand)."""
    if not row.answers or any(shown(row.context, answer) for answer in row.answers):
        return None
    return f"question {row.id}: {misplaced(row.context, row.answers[0])}"


def misplaced(context: str, answer: Answer) -> str:
    """What stands where an answer's start says, in words."""
    there = context[max(answer.start, 0) : max(answer.start, 0) + len(answer.text)]
    return f"answer_start {answer.start} shows {short(there)}, not {short(answer.text)}"


def shown(context: str, answer: Answer) -> bool:
    """Whether the answer's text stands at its start, letter for letter; an empty text stands nowhere."""
    return bool(answer.text) and answer.start >= 0 and context.startswith(answer.text, answer.start)


def read_predictions(path: Path) -> dict[str, str]:
    """Reads an official prediction file, ``{id: text}``.

    Raises:
        DataError: It is something else.
    """
    loaded = load_json(path)
    if not isinstance(loaded, dict) or not all(isinstance(text, str) for text in loaded.values()):
        raise DataError('The file holds no predictions: {"id": "text", …} is needed.', where=str(path))
    for key, text in loaded.items():
        if (fault := no_character(text)) is not None:
            raise DataError(f"The prediction of {key!r} holds {fault}.", where=str(path))
    return loaded


@contextmanager
def writing_json(path: Path) -> Iterator[Callable[[str, Any], None]]:
    """Hands out what writes a key with its value into one of the official files (predictions, n-best, null odds).

    UTF-8, letters as they are, four spaces: what ``json.dump`` writes of the whole. ValueError where a number is NaN or infinite.
    """
    with writing(path) as file:
        empty = True

        def write(key: str, value: Any) -> None:
            nonlocal empty
            entry = json.dumps({key: value}, ensure_ascii=False, indent=4, allow_nan=False)
            file.write(("{" if empty else ",") + entry[1:-2])
            empty = False

        yield write
        file.write("{}\n" if empty else "\n}\n")


def write_json(path: Path, values: Mapping[str, Any]) -> Path:
    """Writes one of the official files whole; see :func:`writing_json`."""
    with writing_json(path) as write:
        for key, value in values.items():
            write(key, value)
    return path


def short(text: str, limit: int = 40) -> str:
    """The text in quotes, cut where it is longer than ``limit``."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def unique(rows: Iterable[QuestionRow], seen: set[str]) -> Iterator[QuestionRow]:
    """The rows, whose ids are not yet in ``seen``; DataError where one comes twice."""
    for row in rows:
        if row.id in seen:
            raise DataError(f"The question id {row.id!r} comes twice: predictions could not be told apart.", where=str(row.place))
        seen.add(row.id)
        yield row


def _questions(loaded: Any, file: str) -> Iterator[QuestionRow]:
    number = 0
    version_2 = str(_dict(loaded, file, "the file").get("version", "")).lower().removeprefix("v").startswith("2.")
    for a, article in enumerate(_get(loaded, "data", list, file, "")):
        at = f"data[{a}]"
        title = str(_dict(article, file, at).get("title", ""))
        for p, paragraph in enumerate(_get(article, "paragraphs", list, file, at)):
            here = f"{at}.paragraphs[{p}]"
            context = _get(_dict(paragraph, file, here), "context", str, file, here)
            for q, qa in enumerate(_get(paragraph, "qas", list, file, here)):
                number += 1
                where = f"{here}.qas[{q}]"
                row = _question(_dict(qa, file, where), context, title, file, where, Place(file, number, "question"))
                yield replace(row, nullable=True) if version_2 else row


def _question(qa: Mapping[str, Any], context: str, title: str, file: str, at: str, place: Place) -> QuestionRow:
    answers: list[Answer] = []
    for n, answer in enumerate(_get(qa, "answers", list, file, at) if qa.get("answers") is not None else []):
        here = f"{at}.answers[{n}]"
        answers.append(
            Answer(_get(_dict(answer, file, here), "text", str, file, here), _get(answer, "answer_start", int, file, here))
        )
    flag = qa.get("is_impossible")
    if flag is not None and not isinstance(flag, bool):
        raise _fault(f"is_impossible is {flag!r}, neither true nor false", file, at)
    labelled = flag is not None or qa.get("answers") is not None
    identity = qa.get("id")
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        raise _fault("id is missing or no text", file, at)
    return QuestionRow(
        id=_written(str(identity), "id", file, at),
        question=_get(qa, "question", str, file, at),
        context=context,
        # Answers of a question that is declared impossible are nobody's gold (2.0 keeps such in plausible_answers).
        answers=() if flag else tuple(answers),
        impossible=labelled and (flag if flag is not None else not answers),
        labelled=labelled,
        nullable=flag is not None or (labelled and not answers),
        title=title,
        place=place,
    )


def squad_record(record: Mapping[str, Any], at: str, place: Place) -> QuestionRow:
    """One row of a record of the hub's form; ``at`` names it in errors. Errors as :func:`squad_records`."""
    answers = record.get("answers")
    if isinstance(answers, Mapping):
        texts, starts = _get(answers, "text", list, at, "answers"), _get(answers, "answer_start", list, at, "answers")
        if len(texts) != len(starts):
            raise _fault(f"answers has {len(texts)} texts, but {len(starts)} starts", at, "")
        answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    fields = {"id": record.get("id", str(place.line - 1)), "question": record.get("question"), "answers": answers}
    if record.get("is_impossible") is not None:
        fields["is_impossible"] = record["is_impossible"]
    return _question(fields, _get(record, "context", str, at, ""), str(record.get("title") or ""), at, "", place)


def _fault(message: str, file: str, at: str) -> DataError:
    return DataError(f"This is no SQuAD file: {message}.", where=f"{file}, {at}" if at else file)


def _dict(value: Any, file: str, at: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _fault(f"an object is needed here, not {type(value).__name__}", file, at)
    return value


def _get(holder: Mapping[str, Any], key: str, kind: type, file: str, at: str) -> Any:
    value = holder.get(key)
    if not isinstance(value, kind) and not (kind is list and isinstance(value, Sequence) and not isinstance(value, str)):
        raise _fault(f"{key} is {'missing' if key not in holder else f'no {kind.__name__}'}", file, at)
    return _written(value, key, file, at) if isinstance(value, str) else value


def _written(text: str, key: str, file: str, at: str) -> str:
    if (fault := no_character(text)) is not None:
        raise _fault(f"{key} holds {fault}", file, at)
    return text
