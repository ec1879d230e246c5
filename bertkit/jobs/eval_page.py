"""What ``bertkit eval`` prints of a part beside its figures, 80 columns wide: classes, groups, errors, surest wrong answers."""

from __future__ import annotations

from collections.abc import Mapping

from bertkit.jobs.columns import lines, shown_width
from bertkit.jobs.console import Console, clean, points
from bertkit.jobs.layout import cut, page_width
from bertkit.metrics.counts import Counts
from bertkit.metrics.entity_errors import EntityError
from bertkit.tasks.detail import Confusion, Detail, Wrong

MOST_CLASSES, MOST_ERRORS, MOST_WRONG = 12, 8, 5
_NAME = 22  # columns of a class's name at most


def print_detail(console: Console, part: str, detail: Detail) -> None:
    """The classes (of many the worst) with what they are taken for, the commonest errors, and the surest wrong answers."""
    width = page_width(console.stdout)
    said = (*_classes(part, detail, width), *_groups(part, detail), *_errors(part, detail), *_wrong(part, detail, width))
    for line in said:
        console.result(line)


def _classes(part: str, detail: Detail, width: int) -> list[str]:
    there = {name: counts for name, counts in detail.classes.items() if counts.defined}
    if not there:
        return []
    shown = _worst(there)
    rows = [["class", "precision", "recall", "f1", "support"]]
    for name, counts in shown.items():
        figures = [points(key, value) for key, value in counts.figures().items()]
        rows.append([cut(clean(name), _NAME), *figures])
    if detail.confusion is not None:
        # Four figures and the gaps between them; the rest of the line says what the class is taken for.
        room = width - sum(max(shown_width(row[place]) for row in rows) + 2 for place in range(5))
        rows[0].append("taken for")
        for row, name in zip(rows[1:], shown, strict=True):
            row.append(cut(_taken(detail.confusion, name), room))
    few = f", the {len(shown)} worst of {len(there)} by F1" if len(shown) < len(there) else ""
    return ["", f"Classes of {part}{few} (all in metrics.json):", *lines(rows, heading=True)]


def _groups(part: str, detail: Detail) -> list[str]:
    found: list[str] = []
    for name, groups in detail.groups.items():
        if len(groups) > 1:
            names = list(next(iter(groups.values())))  # how many, then figures in points
            rows = [[name, *names]]
            rows += [[group, f"{each[names[0]]:,}", *(f"{each[n]:.2f}" for n in names[1:])] for group, each in groups.items()]
            found += ["", f"{part} by {name}:", *lines(rows, heading=True)]
    return found


def _errors(part: str, detail: Detail) -> list[str]:
    if not detail.errors:
        return []
    shown = list(detail.errors.items())[:MOST_ERRORS]
    few = " commonest" if len(shown) < len(detail.errors) else ""
    room = max(len(str(count)) for _, count in shown)
    rows = [f"{count:>{room}}  {_said(error)}" for error, count in shown]
    return ["", f"The{few} errors with entities of {part} (all in metrics.json):", *rows]


def _said(error: EntityError) -> str:
    gold, predicted = (cut(clean(name), _NAME) for name in (error.gold, error.predicted))
    said = {
        "type": f"{gold} taken for {predicted}",
        "borders": f"{gold} with other borders",
        "type and borders": f"{gold} taken for {predicted}, with other borders",
        "missed": f"{gold} missed",
        "invented": f"{predicted} invented",
    }
    return said[error.fault].strip()


def _worst(classes: Mapping[str, Counts]) -> Mapping[str, Counts]:
    """All classes where they are few; else those with the least F1, the more frequent first among equals."""
    if len(classes) <= MOST_CLASSES:
        return classes
    order = sorted(classes, key=lambda name: (classes[name].f1 or 0.0, -classes[name].gold))
    return {name: classes[name] for name in order[:MOST_CLASSES]}


def _taken(confusion: Confusion, name: str) -> str:
    return ", ".join(f"{clean(other)} {count}" for other, count in confusion.taken_for(name)) or "-"


def _wrong(part: str, detail: Detail, width: int) -> list[str]:
    if not detail.wrong:
        return []
    shown, what = detail.wrong[:MOST_WRONG], "largest errors" if detail.measure == "error" else "surest wrong answers"
    numbers = [_number(one, detail.measure) for one in shown]
    room = max(map(len, numbers))
    found = ["", f"The {what} of {part} (all {len(detail.wrong):,} in errors.jsonl):"]
    for one, number in zip(shown, numbers, strict=True):
        before = f"{number:>{room}}  {cut(clean(one.id), _NAME)}  "
        found.append(before + cut(clean(one.said), width - shown_width(before)))
        found.append(" " * (room + 2) + cut(clean(" / ".join(one.texts.values())), width - room - 2))
    return found


def _number(one: Wrong, measure: str) -> str:
    return "-" if one.sure is None else f"{one.sure:.2f}" if measure == "error" else f"{100 * one.sure:.2f}"
