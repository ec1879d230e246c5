"""Libraries that were loaded in an earlier test still say what they have to say: no order of tests matters."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable

import pytest


def test_a_library_that_an_earlier_test_loaded_speaks_to_todays_stderr(
    logs_go_on: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    over, library = io.StringIO(), logging.getLogger("a library of the tests")
    handler = logging.StreamHandler(over)
    handler.flush = over.flush  # type: ignore[method-assign]  # as transformers does
    library.addHandler(handler)
    library.propagate = False
    over.close()
    try:
        logs_go_on()
        library.error("some words")
        assert capsys.readouterr().err == "some words\n"
    finally:
        library.removeHandler(handler)
