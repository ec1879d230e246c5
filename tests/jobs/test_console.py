"""What a run says: the two streams, plain lines, notices once, numbers, dangerous characters; and the wish to stop."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertkit import notices
from bertkit.errors import Stopped, Terminated
from bertkit.jobs.console import Console, clean, figure_rows, finite, is_first_process, points, to_json
from bertkit.jobs.signals import Stop, StopNow
from bertkit.notices import Notice


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def console(**more: Any) -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console(stdout=out, stderr=err, first=more.pop("first", True), **more), out, err


def test_results_go_to_stdout_and_all_else_to_stderr() -> None:
    told, out, err = console()
    told.result("asked for")
    told.say("by the way")
    told.notice(Notice("k", "noticed"))
    assert out.getvalue() == "asked for\n"
    assert err.getvalue() == "by the way\nNote: noticed\n"


def test_quiet_and_json_and_later_processes_keep_still() -> None:
    for more in ({"quiet": True}, {"first": False}):
        told, out, err = console(**more)
        told.result("x")
        told.say("y")
        with told.progress("z", 3) as update:
            update(3)
        assert (out.getvalue(), err.getvalue()) == ("", "")
    told, out, err = console(json=True)
    told.result("x")
    told.data({"x": 1})
    told.say("y")
    assert (out.getvalue(), err.getvalue()) == ("", "y\n")


def test_a_notice_is_said_once_and_kept_for_json_even_when_quiet() -> None:
    told, _, err = console()
    with told.hearing():
        for _ in range(3):
            notices.say("label-order", "The task's order is taken.")
    assert err.getvalue().count("order") == 1
    assert told.warnings == [{"kind": "label-order", "message": "The task's order is taken."}]
    silent, _, err = console(quiet=True)
    silent.notice(Notice("k", "m"))
    assert (err.getvalue(), len(silent.warnings)) == ("", 1)


def test_progress_off_a_terminal_is_plain_lines_at_a_steady_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("bertkit.jobs.console.time.monotonic", lambda: clock[0])
    told, out, err = console(every=10.0)
    with told.progress("Reading", 100) as update:
        for done in range(1, 101):
            clock[0] += 0.35
            update(done, 100, "loss 2.5")
    lines = err.getvalue().splitlines()
    assert [line.split(" of")[0] for line in lines] == ["Reading: 29", "Reading: 58", "Reading: 87", "Reading: 100"]
    assert lines[-1] == "Reading: 100 of 100 (100%)  loss 2.5"
    assert "\r" not in err.getvalue()
    assert "\x1b" not in err.getvalue()
    assert out.getvalue() == ""


def test_progress_on_a_terminal_is_drawn_and_lines_stay_whole(tmp_path: Path) -> None:
    code = """
        from bertkit.jobs.console import Console
        console = Console()
        with console.progress("Training", 3) as update:
            update(1, 3)
            console.say("Step [1]: a line that stands above the bar " + "x" * 120)
            update(3, 3, "[red]loss[/red]")
    """
    main, worker = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=worker, stdout=worker, env=environment)
    os.close(worker)
    shown = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    process.wait()
    os.close(main)
    assert b"\x1b[" in shown
    assert b"Step [1]: a line that stands above the bar " + b"x" * 120 in shown
    assert b"[red]loss[/red]" in shown


def test_a_notice_is_wrapped_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    message = "a word " * 30 + "/a/path/" + "x" * 90
    err = Terminal()
    Console(stdout=io.StringIO(), stderr=err, first=True).notice(Notice("k", message))
    *lines, path = err.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert path.strip() == "/a/path/" + "x" * 90
    assert err.getvalue().split() == ["Note:", *message.split()]
    told, _, plain = console()
    told.notice(Notice("k", message))
    assert plain.getvalue() == f"Note: {message}\n"


@pytest.mark.parametrize(
    ("columns", "shown", "bar"),
    [
        ("80", "Training 20/1,000  mlm 6.789  nsp 0.692  lr 3.26e-04  8,719 tokens/s  0:35 left", False),
        ("160", "8,719 tokens/s  0:35 left", True),
    ],
)
def test_a_note_has_a_narrow_line_to_itself(monkeypatch: pytest.MonkeyPatch, columns: str, shown: str, bar: bool) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    told = Console(stdout=io.StringIO(), stderr=Terminal(), first=True)
    with told.progress("Training", 1000) as update:
        update(20, note="mlm 6.789  nsp 0.692  lr 3.26e-04  8,719 tokens/s  0:35 left")
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", told.stderr.getvalue()).replace("\r", "\n").strip().split("\n")[-1]  # type: ignore[attr-defined]
    assert shown in last
    assert any(c in last for c in "━╸") == bar


def test_an_update_that_is_a_safe_point_stops() -> None:
    told, _, _ = console()
    told.stop.request(signal.SIGTERM)
    with told.progress("x") as update:
        update(1)
    with pytest.raises(Terminated), told.progress("x", safe=True) as update:
        update(1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb", "a\\x0db"),
        ("\x9b2J", "\\x9b2J"),
        ("a\u202eb", "a\\u202eb"),
        ("\x07\x00\x7f", "\\x07\\x00\\x7f"),
        ("é 中\tx\ny", "é 中\tx\ny"),
    ],
)
def test_terminal_escapes_from_data_are_spelled_out(text: str, shown: str) -> None:
    assert clean(text) == shown
    told, out, err = console()
    told.result(text)
    told.say(text)
    told.notice(Notice("k", text))
    told.table([(text.replace("\n", ""), 1)])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out.getvalue() + err.getvalue())


def test_streams_that_cannot_show_a_character_get_it_spelled() -> None:
    raw = io.BytesIO()
    told = Console(stdout=io.TextIOWrapper(raw, encoding="ascii"), stderr=io.StringIO(), first=True)
    told.result("é中")
    told.data({"label": "é中"})
    told.stdout.flush()
    first, second = raw.getvalue().decode("ascii").splitlines()
    assert first == "\\xe9\\u4e2d"
    assert json.loads(second) == {"label": "é中"}


def test_json_has_no_nan_and_takes_numpys_and_torchs_numbers() -> None:
    value = {
        "a": float("nan"), "b": [float("inf"), 1.5], "c": np.float32(0.5), "d": np.int64(3), "e": torch.tensor(2.0),
        "f": Path("x"), "g": None, "h": True, "i": np.float64("nan"), "j": "\udcff",
    }  # fmt: skip
    assert json.loads(to_json(value)) == {
        "a": None, "b": [None, 1.5], "c": 0.5, "d": 3, "e": 2.0, "f": "x", "g": None, "h": True, "i": None, "j": "\\udcff",
    }  # fmt: skip
    assert finite(np.bool_(True)) is True


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("accuracy", 0.8421, "84.21"), ("matthews", -0.05, "-5.00"), ("pearson", None, "-"), ("f1", float("nan"), "-"),
        ("mlm_loss", 7.394, "7.3940"), ("examples", 22, "22"), ("steps", 12345, "12,345"), ("accuracy", 1.0, "100.00"),
    ],
)  # fmt: skip
def test_figures_are_points(name: str, value: Any, shown: str) -> None:
    assert points(name, value) == shown


def test_squads_figures_are_points_already() -> None:
    assert dict(figure_rows({"exact": 80.0, "f1": 0.5})) == {"exact": "80.00", "f1": "0.50"}
    assert dict(figure_rows({"f1": 0.5, "f1_interval": [0.4, 0.6]})) == {"f1": "50.00"}


def test_tables_align_wide_characters() -> None:
    told, out, _ = console()
    told.table([("中文", 1), ("abc", 100)], header=("name", "n"))
    assert out.getvalue() == "name    n\n中文    1\nabc   100\n"


@pytest.mark.parametrize(("rank", "first"), [(None, True), ("0", True), ("", True), ("1", False)])
def test_the_first_process_alone_speaks(monkeypatch: pytest.MonkeyPatch, rank: str | None, first: bool) -> None:
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    assert is_first_process() is first


# Signals


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, Stopped), (signal.SIGTERM, Terminated)])
def test_the_first_signal_waits_for_a_safe_point(number: signal.Signals, error: type[Stopped]) -> None:
    said: list[str] = []
    stop = Stop(said.append)
    with stop.installed(), stop.deferred():
        os.kill(os.getpid(), number)
        assert stop.requested
        assert len(said) == 1
        with pytest.raises(error) as caught:
            stop.check()
        assert type(caught.value) is error


def test_a_second_signal_stops_at_once() -> None:
    stop = Stop()
    with stop.installed(), stop.deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StopNow) as caught:
            os.kill(os.getpid(), signal.SIGINT)
    assert caught.value.exit_code == 130


def test_a_signal_that_nobody_defers_stops_at_once_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = Stop()
    with pytest.raises(StopNow) as caught, stop.installed():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    Stop().check()


def test_styles_are_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    parts = [("a red word ", ""), ("here\x1b[0m", "red"), (" and more" * 12, "")]
    pipe, terminal, plain = io.StringIO(), Terminal(), Terminal()
    Console(stdout=pipe).styled(parts, first="- ", rest="  ")
    Console(stdout=terminal).styled(parts, first="- ", rest="  ")
    monkeypatch.setenv("NO_COLOR", "1")
    Console(stdout=plain).styled(parts, first="- ", rest="  ")
    lines = pipe.getvalue().split("\n")
    assert [line[:2] for line in lines] == ["- ", "  ", ""]
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[31mhere\\x1b[0m\x1b[0m" in terminal.getvalue()
    assert plain.getvalue() == pipe.getvalue()
    quiet = io.StringIO()
    Console(stdout=quiet, quiet=True).styled(parts)
    Console(stdout=quiet, json=True).styled(parts)
    assert quiet.getvalue() == ""
