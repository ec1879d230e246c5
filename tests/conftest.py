"""What all tests share: where the real data lies, and threads that leave room for one another."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "hub"))  # under importlib mode pytest puts no folder on the path
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that means the hub says so itself
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data and models (BERTKIT_DATA); tests that need it are skipped where it is not set."""
    folder = os.environ.get("BERTKIT_DATA")
    if not folder:
        pytest.skip("BERTKIT_DATA is not set: no real data here")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def no_power_fails() -> Iterator[None]:
    """What is flushed to the disk in this process is not waited for: a tenth of the time of tests that save models.

    A handle that cannot be flushed is an error as ever; other processes flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


class _Today:
    """Whatever stderr is when something is written."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _logs_go_on() -> None:
    for logger in [logging.root, *logging.root.manager.loggerDict.values()]:
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "closed", False):
                handler.stream = _Today()
                handler.__dict__.pop("flush", None)  # transformers binds that of the stream itself


@pytest.fixture(autouse=True)
def logs_go_on() -> Callable[[], None]:
    """Gives handlers of a closed stderr one that is open.

    A library's handler keeps the stderr of the test in which the library was loaded, and pytest closes it behind that test: every
    later word of the library's would be a "Logging error" in the stderr of a test that has nothing to do with it.
    """
    _logs_go_on()
    return _logs_go_on
