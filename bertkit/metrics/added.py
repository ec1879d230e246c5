"""Any metric of the ``evaluate`` library beside bertkit's own figures: from a script of people's own, or from the hub.

The library is loaded when it is called for. Files touch no network; without one the hub's are taken from the cache, or the
answer comes in seconds. A metric is Python code, run because the person named it.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, DataError, MissingError
from bertkit.labelled.hub import offline_unless_reachable
from bertkit.notices import say


class AddedMetric:
    """One metric, ready to be computed.

    Args:
        name: ``NAME`` or ``PATH`` (a script, or a folder with a script of its name), with ``:CONFIGURATION`` behind where
            the metric has several.

    Raises:
        MissingError: No such file; no network and nothing cached; evaluate or a library of the metric is not installed (exit 4).
        DataError: The script fails (exit 3).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        place, config = (name, None) if Path(name).exists() or ":" not in name else tuple(name.rsplit(":", 1))
        self.stem = Path(str(place)).stem
        try:
            import evaluate
        except ImportError as error:
            raise MissingError(
                "The evaluate library is not installed.", where=f"--metric {name}", hint="pip install evaluate"
            ) from error
        script = _script(str(place))
        try:
            # The folder is asked for, and nothing goes into it: the rows stay in memory.
            with _asking_the_hub(script is None, name), tempfile.TemporaryDirectory() as folder:
                self._metric = evaluate.load(script or place, config, keep_in_memory=True, cache_dir=folder)
        except Exception as error:
            raise _explained(error, name, script) from error

    def figures(self, predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, float | None]:
        """What it says of predictions, one a row: its numbers by its own names, None where one is not finite.

        Raises:
            DataError: It cannot score such rows (exit 3).
        """
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found = self._metric.compute(predictions=list(predictions), references=list(references))
        except Exception as error:
            raise DataError(
                f"The metric cannot score these predictions: {type(error).__name__}: {_first_line(error)}",
                where=f"--metric {self.name}",
                hint="Choose one for the kind of the task's labels.",
            ) from error
        numbers = {key: _number(value) for key, value in (found or {}).items()}
        if strange := [key for key, value in numbers.items() if value is None]:
            say("undefined-score", f"{self.name} gives no number for {', '.join(strange)}: it is null.")
        return numbers


def _script(place: str) -> str | None:
    """The script of a metric that is here; None for a name of the hub's."""
    path = Path(place)
    if path.is_dir() and (path / f"{path.resolve().name}.py").is_file():
        return str(path.resolve())
    if path.is_file() and path.suffix == ".py":
        return str(path.resolve())
    if path.exists() or path.suffix == ".py" or place.startswith((".", "/", "~")) or place.count("/") > 1:
        raise MissingError(
            "There is no such metric.",
            where=f"--metric {place}",
            hint="Name a Python script, a folder with a script of its name, or a metric of the hub.",
        )
    return None


@contextmanager
def _asking_the_hub(hub: bool, name: str) -> Iterator[None]:
    """Inside, evaluate goes to the network for a name of the hub's alone, and only where one answers."""
    import datasets
    import evaluate
    from huggingface_hub import constants

    before = evaluate.config.HF_EVALUATE_OFFLINE
    with offline_unless_reachable() if hub else contextlib.nullcontext():
        evaluate.config.HF_EVALUATE_OFFLINE = not hub or constants.HF_HUB_OFFLINE or datasets.config.HF_HUB_OFFLINE
        if hub:
            say("metric-code", f"The metric {name} is Python code from the hub ({constants.ENDPOINT}), which is run.")
        try:
            yield
        finally:
            evaluate.config.HF_EVALUATE_OFFLINE = before


def _explained(error: Exception, name: str, script: str | None) -> BertkitError:
    where = f"--metric {name}"
    if isinstance(error, ImportError):
        return MissingError(f"The metric needs a library: {_first_line(error)}", where=where, hint="Install it and try again.")
    if script is None and isinstance(error, ConnectionError | FileNotFoundError | TimeoutError):
        return MissingError(
            "The metric is no file here, and cannot be had from the hub or its cache.",
            where=f"{where}, {os.environ.get('HF_ENDPOINT', 'the Hugging Face hub')}",
            hint="Give the path of its script; HF_ENDPOINT names a mirror.",
        )
    return DataError(
        f"The metric cannot be loaded: {type(error).__name__}: {_first_line(error)}",
        where=where,
        # Of a script without one evaluate says only that "'NoneType' object is not callable".
        hint="A script holds a class that derives from evaluate.Metric." if isinstance(error, TypeError) else None,
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def _number(value: Any) -> float | None:
    """A plain number of what a metric gave; None for what is none (arrays, texts) and for what is not finite."""
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "size", 1) == 1:
        value = item()
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
