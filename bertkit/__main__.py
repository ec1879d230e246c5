"""``python -m bertkit``, ``torchrun -m bertkit``, ``accelerate launch -m bertkit`` and the ``bertkit`` program."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Runs the command line of this process and returns its exit code."""
    _speak_utf8()
    _open_streams()
    if "BERTKIT_STARTED_BY" in os.environ:
        from bertkit.jobs.processes import end_with_parent

        end_with_parent()
    from bertkit.cli.main import run

    return run(sys.argv[1:])


def _open_streams() -> None:
    """Lets standard streams that were closed (``>&-``) lead nowhere: else the next file that is opened takes their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it stays open


def _speak_utf8() -> None:
    """Starts again in Python's UTF-8 mode where the locale is another (``LC_ALL=C``).

    There a file name with ``é`` could be neither recorded nor opened. The process stays the same one; what the console
    cannot show is still escaped.
    """
    if os.name == "posix" and sys.getfilesystemencoding().lower().replace("-", "") != "utf8" and sys.orig_argv:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
