"""What a command says. Two streams: what was asked for on stdout, everything else on stderr.

On a terminal progress is drawn by rich; elsewhere it is plain lines at a steady rate, without escapes or carriage returns.
Of several processes the first alone speaks. Texts from data are neutralised: no control character reaches a terminal.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from bertkit.jobs import columns
from bertkit.jobs.layout import page_width
from bertkit.jobs.signals import Stop
from bertkit.metrics.shares import is_share
from bertkit.notices import Notice, listening

if TYPE_CHECKING:
    from rich.progress import Progress

Update = Callable[..., None]
_WIDE = 120  # columns from which a bar has room beside a note
EVERY = 10.0  # seconds between two plain progress lines


def is_first_process() -> bool:
    """Whether this is the process that speaks: rank 0, or the only one."""
    return os.environ.get("RANK", "0") in ("", "0")


def clean(text: object) -> str:
    """Text that is safe on a terminal: controls (C0 but newline and tab, C1) and bidi overrides are spelled out."""
    return "".join(_spell(c) if _dangerous(c) else c for c in str(text))


def _dangerous(c: str) -> bool:
    return (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"


def _spell(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"


def finite(value: Any) -> Any:
    """The value as JSON can hold it: NaN and infinities are null, paths are texts, arrays' numbers plain ones."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")  # a file's name may hold what UTF-8 cannot
    if value is None or isinstance(value, (bool, int)):
        return value
    item = getattr(value, "item", None)  # a numpy or torch scalar
    return finite(item()) if item is not None and getattr(value, "ndim", 1) == 0 else str(value)


def to_json(value: Any, *, indent: int | None = None, stream: TextIO | None = None) -> str:
    """One JSON text without NaN; in ASCII where it goes to a ``stream`` that is not UTF-8."""
    plain = stream is not None and (stream.encoding or "utf-8").lower().replace("-", "") not in ("utf8", "utf8sig")
    return json.dumps(finite(value), ensure_ascii=plain, allow_nan=False, indent=indent)


def points(name: str, value: Any, *, already: bool = False) -> str:
    """A figure as people read it: shares in points (0-100), losses and counts as they are, ``-`` where there is none.

    Args:
        name: Its key; losses and counts are known by it.
        value: The figure, a share in 0-1 (a correlation in -1-1).
        already: It is in points as it stands (SQuAD's ``exact`` and ``f1``).
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return clean(value)
    if isinstance(value, int):
        return f"{value:,}"
    if name.endswith("seconds"):
        return f"{value:,.1f}"
    if not is_share(name):
        return f"{value:.4f}"
    return f"{value if already else value * 100:.2f}"


def figure_rows(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and figures as people read them. SQuAD's, known by their ``exact``, are points already, as its script prints them."""
    squad = any(re.split(r"[/.]", name)[-1] == "exact" for name in figures)
    plain = {name: value for name, value in figures.items() if not isinstance(value, (Mapping, list, tuple))}
    return [(name, points(name, value, already=squad)) for name, value in plain.items()]


class Console:
    """The two streams of one command, its notices and its wish to stop.

    Args:
        quiet: Only the output's path is printed, and errors.
        json: stdout gets one JSON object (the command line's business) and nothing else.
        stop: The signals of this command; a job polls ``console.stop``.
        line: The command line, for the record (``console.line``).
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        json: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        stop: Stop | None = None,
        first: bool | None = None,
        every: float = EVERY,
        line: str = "",
    ) -> None:
        self.line = line
        self.quiet = quiet
        self.json = json
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.first = is_first_process() if first is None else first
        self.every = every
        self.stop = stop or Stop()
        self.stop.say = self.stop.say or self.say
        self.heard: dict[Notice, None] = {}
        self._live: Progress | None = None

    @property
    def terminal(self) -> bool:
        """Whether stderr is a terminal that may be drawn on."""
        return self.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def say(self, text: object = "") -> None:
        """A line on stderr, from the first process alone, unless ``-q``."""
        if self.first and not self.quiet:
            self._error_line(clean(text))

    def reading(self, stdin: TextIO) -> None:
        """Says that texts are waited for, where a person would have to type them."""
        if stdin.isatty():
            self.say("Reading texts, one a line, from the terminal: Ctrl-D on an empty line ends them.")

    def notice(self, notice: Notice) -> None:
        """A notice: printed once on stderr, and kept for ``--json``."""
        if notice not in self.heard:
            self.heard[notice] = None
            told = f"Note: {notice.message}"
            if self.terminal:  # elsewhere a line stays one, for grep
                width = page_width(self.stderr)
                told = "\n".join(
                    textwrap.wrap(told, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
                )
            self.say(told)

    def hearing(self) -> Any:
        """A context manager: inside, every notice of every room comes here."""
        return listening(self.notice)

    @property
    def warnings(self) -> list[dict[str, str]]:
        """The notices heard so far, as ``--json`` gives them."""
        return [{"kind": notice.kind, "message": notice.message} for notice in self.heard]

    def result(self, text: object = "") -> None:
        """What was asked for, on stdout; nothing under ``--json`` (there it is in the object) or ``-q``."""
        if self.first and not self.quiet and not self.json:
            self._write(self.stdout, clean(text))

    def styled(self, parts: Sequence[tuple[object, str]], *, first: str = "", rest: str = "") -> None:
        """What was asked for, in several styles: wrapped to the width of a page, and coloured on a terminal alone.

        Args:
            parts: Texts, spaces included, each with rich's name of a style (``bold``, ``red``) or ``""``.
            first: What the first line begins with.
            rest: What every further line begins with.
        """
        from rich.console import Console as RichConsole
        from rich.text import Text

        if not self.first or self.quiet or self.json:
            return
        terminal = self.stdout.isatty() and os.environ.get("TERM") != "dumb"
        drawing = RichConsole(
            file=self.stdout,
            width=page_width(self.stdout),
            force_terminal=terminal,
            no_color=not terminal or bool(os.environ.get("NO_COLOR")),
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
        )
        text = Text.assemble(*((clean(part), style) for part, style in parts))
        for number, line in enumerate(text.wrap(drawing, drawing.width - max(len(first), len(rest)))):
            line.rstrip()
            drawing.print(Text(rest if number else first) + line, soft_wrap=True)

    def data(self, record: Any) -> None:
        """A record of asked-for data on stdout, one JSON line (``predict``), also with ``-q``; nothing under ``--json``."""
        if self.first and not self.json:
            self._write(self.stdout, to_json(record, stream=self.stdout))

    def table(self, rows: Sequence[Sequence[object]], header: Sequence[str] | None = None) -> None:
        """Columns on stdout, aligned, numbers' columns to the right; on a terminal the last one is wrapped to its width."""
        cells = [[clean(cell) for cell in row] for row in ([list(header)] if header else []) + [list(row) for row in rows]]
        width = shutil.get_terminal_size().columns if self.stdout.isatty() else None
        for line in columns.lines(cells, heading=bool(header), width=width):
            self.result(line)

    def metrics(self, figures: Mapping[str, Any]) -> None:
        """Figures on stdout, one a line, in points."""
        self.table(figure_rows(figures))

    @contextmanager
    def progress(self, what: str, total: int | None = None, *, safe: bool = False) -> Iterator[Update]:
        """Progress of one long piece of work: hands out ``update(done, total=None, note="")``.

        Args:
            what: What is being done, two or three words.
            total: How many there are, where that is known.
            safe: Each update is a safe point: it raises where a stop was requested.
        """
        shown = self.first and not self.quiet
        draw = self._drawn(what, total) if shown and self.terminal and self._live is None else self._plain(what, total, shown)
        with draw as update:

            def checked(done: int, of: int | None = None, note: str = "") -> None:
                update(done, of if of is not None else total, note)
                if safe:
                    self.stop.check()

            yield checked

    @contextmanager
    def _plain(self, what: str, total: int | None, shown: bool) -> Iterator[Update]:
        last = time.monotonic()
        pending: tuple[int, int | None, str] | None = None

        def update(done: int, of: int | None, note: str) -> None:
            nonlocal last, pending
            pending = (done, of, note)
            if shown and time.monotonic() - last >= self.every:
                last, pending = time.monotonic(), None
                self.say(_progress_line(what, done, of, note))

        yield update
        if shown and pending is not None:
            self.say(_progress_line(what, *pending))

    @contextmanager
    def _drawn(self, what: str, total: int | None) -> Iterator[Update]:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        drawing = RichConsole(file=self.stderr, markup=False, highlight=False, emoji=False)
        # Losses, rate and time left fill a narrow line: beside them a bar and the times would leave crumbs of everything.
        narrow = (TextColumn("{task.description} {task.fields[counted]}  {task.fields[note]}", markup=False),)
        with Progress(*columns, console=drawing, redirect_stdout=False, redirect_stderr=False) as live:
            task = live.add_task(clean(what), total=total, note="", counted="")

            def update(done: int, of: int | None, note: str) -> None:
                live.columns = narrow if note and drawing.width < _WIDE else columns
                counted = f"{done:,}/{of:,}" if of else f"{done:,}"
                live.update(task, completed=done, total=of, note=clean(note), counted=counted)

            self._live = live
            try:
                yield update
            finally:
                self._live = None

    def _error_line(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            try:
                self._write(self.stderr, text)
            except BrokenPipeError:  # whoever read along has gone (`2>&1 | head`): that is no reason to stop a training
                _lead_nowhere(self.stderr)

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        try:
            print(text, file=stream, flush=True)
        except UnicodeEncodeError:  # a stream that was not made by the command line: spell out what it cannot show
            encoding = stream.encoding or "ascii"
            print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _lead_nowhere(stream: TextIO) -> None:
    with open(os.devnull, "wb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), stream.fileno())


def _progress_line(what: str, done: int, total: int | None, note: str) -> str:
    share = f" of {total:,} ({100 * done // total}%)" if total else ""
    return f"{what}: {done:,}{share}{'  ' + note if note else ''}"
