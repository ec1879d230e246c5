"""A run folder that is taken back where its run comes to nothing, so that it does not block the next try."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bertkit.jobs.places import remove_made
from bertkit.jobs.run_folder import RunFolder


@contextmanager
def tentative(path: Path, take: Callable[[], RunFolder], begun: Callable[[RunFolder], bool]) -> Iterator[RunFolder]:
    """The folder that ``take`` claims; where a new run fails or is stopped before it has ``begun``, what it made is removed.

    Args:
        path: About where it lies: folders above it that were made for it go with it.
        take: Claims it.
        begun: Is there something to go on from?
    """
    there = {parent for parent in (path, *path.parents) if parent.exists()}
    folder = take()
    try:
        with folder:
            try:
                yield folder
            except BaseException:
                if folder.situation == "new" and not begun(folder):
                    with contextlib.suppress(OSError):  # what went wrong before is what is told
                        remove_made(folder.path, folder.state)
                raise
    finally:
        _remove_empty(folder.path, there)


def _remove_empty(folder: Path, there: set[Path]) -> None:
    for each in (folder, *folder.parents):
        if each in there:
            return
        try:
            each.rmdir()
        except OSError:
            return
