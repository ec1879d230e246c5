"""Notices: things said once to the person who runs a command, from any room, without knowing the console.

``say`` is called where the fact is known; the job that runs puts a listener in place, which prints to stderr and keeps
the notices for ``--json``. Without a listener (bertkit as a library) they are Python warnings' business: nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing said: ``kind`` is a stable word for programs (``"label-order"``), ``message`` a sentence for people."""

    kind: str
    message: str


_listeners: list[Callable[[Notice], None]] = []
_hushed: list[frozenset[str]] = []


def say(kind: str, message: str) -> None:
    """Tells every listener; saying the same thing once is the listener's part."""
    if any(kind in kinds for kinds in _hushed):
        return
    for listener in _listeners:
        listener(Notice(kind, message))


@contextmanager
def listening(listener: Callable[[Notice], None]) -> Iterator[None]:
    """Hands every notice said inside to ``listener``."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def hushed(*kinds: str) -> Iterator[None]:
    """Inside, notices of these kinds reach nobody: whoever says so tells the same in another way."""
    _hushed.append(frozenset(kinds))
    try:
        yield
    finally:
        _hushed.pop()


@contextmanager
def collecting() -> Iterator[list[Notice]]:
    """Collects the notices said inside, each once."""
    heard: list[Notice] = []
    with listening(lambda notice: None if notice in heard else heard.append(notice)):
        yield heard
