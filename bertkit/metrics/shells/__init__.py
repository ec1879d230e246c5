"""Shells over the pure functions of ``metrics`` for those who work with ``evaluate``; no command of bertkit goes through them.

>>> evaluate.load(bertkit.metrics.shells.FOLDER, "matthews").compute(predictions=[1, 0], references=[1, 1])
{"matthews": 0.0}

The folder is a script that ``evaluate`` runs, so nothing is fetched; ``evaluate`` itself makes cache folders and takes seconds
to import. Which names there are is said in ``shells.py``.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = str(Path(__file__).parent)
