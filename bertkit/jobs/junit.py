"""Verdicts as a JUnit test suite: the XML that CI systems show, one test case a gate.

The attributes are those that the common schemas (Ant's and Jenkins's) require. Of an inconclusive comparison that may pass the
test case is skipped, with the numbers.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from bertkit.errors import BertkitError
from bertkit.jobs.console import clean, figure_rows
from bertkit.jobs.places import write_text
from bertkit.jobs.verdict import Verdict


def write_junit(path: Path, task: str, verdicts: Sequence[Verdict], figures: dict[str, float | None], seconds: float) -> None:
    """Writes the suite, whole or not at all; the figures are its properties."""
    suite = _suite(task, len(verdicts), seconds)
    kept = ElementTree.SubElement(suite, "properties")
    for name, value in figure_rows(figures):
        ElementTree.SubElement(kept, "property", {"name": _text(name), "value": value})
    for verdict in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", {"name": _text(verdict.name), "classname": f"bertkit.eval.{task}", "time": "0"}
        )
        if not verdict.met:
            failure = {"message": _text(verdict.message), "type": f"{verdict.kind}-{verdict.outcome}"}
            ElementTree.SubElement(case, "failure", failure).text = _text(_numbers(verdict))
        elif verdict.outcome == "inconclusive":
            ElementTree.SubElement(case, "skipped", {"message": _text(f"inconclusive: {verdict.message}")})
    suite.set("failures", str(sum(not verdict.met for verdict in verdicts)))
    suite.set("skipped", str(sum(verdict.met and verdict.outcome == "inconclusive" for verdict in verdicts)))
    _write(path, suite)


def write_failed_junit(path: Path, task: str, error: BertkitError, seconds: float) -> None:
    """The suite of an evaluation that came to no verdict, so that nobody takes an older file for this one's."""
    suite = _suite(task, 1, seconds)
    suite.set("errors", "1")
    ElementTree.SubElement(suite, "properties")
    case = ElementTree.SubElement(suite, "testcase", {"name": "evaluation", "classname": f"bertkit.eval.{task}", "time": "0"})
    ElementTree.SubElement(case, "error", {"message": _text(error.message), "type": error.kind}).text = _text(error)
    _write(path, suite)


def _suite(task: str, tests: int, seconds: float) -> ElementTree.Element:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    counts = {"tests": str(tests), "failures": "0", "errors": "0", "skipped": "0", "time": f"{seconds:.3f}"}
    named = {"name": f"bertkit eval {task}", "package": "bertkit", "id": "0"}
    return ElementTree.Element("testsuite", named | counts | {"timestamp": now, "hostname": platform.node() or "localhost"})


def _write(path: Path, suite: ElementTree.Element) -> None:
    for name in ("system-out", "system-err"):
        ElementTree.SubElement(suite, name)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n")


def _numbers(verdict: Verdict) -> str:
    return "\n".join([verdict.message, *(f"{name}: {value}" for name, value in verdict.numbers.items())])


def _text(value: object) -> str:
    """Text that XML can hold: controls, half surrogate pairs and the two last places of the plane are spelled out."""
    return "".join(
        c if c not in "\ufffe\uffff" else f"\\u{ord(c):04x}" for c in clean(value).encode("utf-8", "backslashreplace").decode()
    )
