"""Shells over the pure functions of ``metrics`` for those who work with ``evaluate``; no command of bertkit goes through them.

>>> evaluate.load(bertkit.metrics.shells.path("labels"), "matthews").compute(predictions=[1, 0], references=[1, 1])
{"matthews": 0.0}

The scripts are local, so nothing is fetched; ``evaluate`` itself makes cache folders and takes seconds to import.
"""

from __future__ import annotations

from pathlib import Path

from bertkit.errors import UsageError, nearest

_FOLDER = Path(__file__).parent


def available() -> list[str]:
    """Names for :func:`path`."""
    return sorted(file.stem for file in _FOLDER.glob("*.py") if file.stem != "__init__")


def path(name: str) -> str:
    """The script of a shell, for ``evaluate.load``.

    Raises:
        UsageError: There is none of that name (exit 2).
    """
    if name not in available():
        raise UsageError(f"There is no metric {name!r}.{nearest(name, available())}", hint=f"There are {', '.join(available())}.")
    return str(_FOLDER / f"{name}.py")
