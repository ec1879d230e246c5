"""What a user names as a corpus, as sources: files, folders, patterns, data sets of the hub, the standard input."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from bertkit.corpus.files import Pipe, TextFile, file_kind
from bertkit.corpus.hub import PREFIX, hub_sources
from bertkit.corpus.kinds import WORDS, Kind, ending, inner_name
from bertkit.corpus.sources import Source, unreadable
from bertkit.corpus.unpacked import PACKED
from bertkit.errors import DataError, MissingError, UsageError, nearest
from bertkit.notices import say

UNREADABLE = frozenset(
    [".zip", ".tar", ".tgz", ".7z", ".rar", ".pdf", ".doc", ".docx", ".odt", ".epub", ".html", ".htm", ".xml", ".bin", ".npy"]
)
"""Endings of files that are surely no text: naming one is an error, not 40 % replacement characters."""

_TAKEN = frozenset([".txt", ".jsonl", ".ndjson", ".parquet", ".pq"])  # .json is more often settings than text
_MADE = {"store.json": "a token store", "bertkit.json": "a run"}
_ONCE_HINT = "Write the text to a file first, or build a store of it: `bertkit corpus build - --tokenizer VOCAB`."
Format = Literal["auto"] | Kind


def named_sources(paths: Sequence[str | Path], *, field: str, format: Format, once: bool) -> tuple[Source, ...]:
    """The sources that ``paths`` name, in order.

    Args:
        paths: Files, folders, patterns (``data/**/*.txt``), ``hf:owner/name``, ``-``.
        field: The field of the text, where they hold records.
        format: Their format; ``auto``: by ending or content, which is said.
        once: What can be read only once is taken too.

    Raises:
        MissingError: A path is not there, a pattern matches nothing, or a folder holds no text.
        DataError: A file is of a kind that cannot be read, or can be read only once.
        UsageError: ``-`` where the text is read more than once, or from a terminal.
    """
    kind = None if format == "auto" else format
    found: list[Source | Path] = []
    for path in paths:
        if not str(path):
            raise UsageError("A corpus has an empty name.", hint="Name a text file or a folder of them.")
        if str(path) == "-":
            found.append(_standard_input(kind, field, once))
        elif str(path).startswith(PREFIX):
            found += hub_sources(str(path), kind=kind, field=field)
        else:
            found += [_pipe(p, kind, field, once) if _is_pipe(p) else p for p in _files(Path(path), known=kind is not None)]
    if not found:
        raise MissingError("No corpus was named.", hint="Name a text file or a folder of them.")
    return tuple(_known(_once(found), kind, field))


def _files(path: Path, *, known: bool) -> list[Path]:
    """``known``: the format is stated, whatever the ending says."""
    if path.is_dir():
        return _folder_files(path)
    if path.exists():
        if ending(path.name) in UNREADABLE and not known:
            raise DataError(
                f"{ending(path.name)} files are not plain text.",
                where=str(path),
                hint="Give it unpacked, as UTF-8 text (.txt); if it is text, say so with --set corpus.format=text "
                "(or wikiextractor, jsonl, parquet).",
            )
        return [path]
    if glob.has_magic(str(path)):
        return _matching(str(path))
    near = nearest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
    raise MissingError(f"There is no file or folder {path}.{near}", where=str(path))


def _folder_files(folder: Path) -> list[Path]:
    """A folder's files by their endings; files without one only where there are no others. Hidden ones are left out."""
    inside = _inside(folder)
    taken = [p for p in inside if ending(p.name) in _TAKEN] or [p for p in inside if not ending(p.name)]
    if not taken:
        raise MissingError(
            f"The folder {folder} holds no .txt file, nor JSON lines or Parquet.",
            where=str(folder),
            hint=f"Name the files themselves, or a pattern in quotes: '{folder}/**/*.md'.",
        )
    _say_left(str(folder), taken, inside)
    return sorted(taken, key=lambda p: p.relative_to(folder).parts)


def _inside(folder: Path) -> list[Path]:
    """The files in a folder of any depth, those behind links to folders too; a text is never left out in silence.

    Raises:
        DataError: The folder is a token store or a run.
        MissingError: A folder in it may not be read, or a link leads nowhere.
    """

    def refuse(error: OSError) -> None:
        raise unreadable(Path(str(error.filename)), error)

    found, seen = [], set()
    for root, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        if (real := os.path.realpath(root)) in seen:  # a link led back
            folders.clear()
            continue
        seen.add(real)
        made = next((what for name, what in _MADE.items() if name in names), None)
        if made is not None and Path(root) == folder:
            raise DataError(
                f"{folder} is {made}, not a folder of texts.",
                where=str(folder),
                hint="Name the texts themselves; `bertkit pretrain` and `corpus inspect` take a token store as it is.",
            )
        if made is not None:  # with a vocabulary, which is no text
            say("corpus-files", f"{root} is {made}, and is left out.")
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(root) / name for name in names if not name.startswith(".")]
    for path in found:
        if path.is_symlink() and not path.exists() and ending(path.name) in _TAKEN:
            raise MissingError(f"{path} is a link to a file that is not there.", where=str(path))
    return [path for path in found if path.is_file()]


def _matching(pattern: str) -> list[Path]:
    """The files that match a pattern, and those in folders that match one without ``**``."""
    matches = [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - a Path's glob takes hidden files
    files = [p for p in matches if p.is_file() or _is_pipe(p)]
    taken = [p for p in files if ending(p.name) not in UNREADABLE]
    if "**" not in pattern:
        for folder in (p for p in matches if p.is_dir()):
            taken += _folder_files(folder)
    if not taken:
        raise MissingError(f"No file of text matches {pattern}.", where=pattern, hint="`**` matches folders of any depth.")
    _say_left(pattern, [p for p in taken if p in set(files)], files)
    return sorted(taken, key=lambda p: p.parts)


def _say_left(where: str, taken: Sequence[Path], inside: Sequence[Path]) -> None:
    if len(taken) < len(inside):
        left = set(inside) - set(taken)
        say(
            "corpus-files",
            f"{where}: {len(taken)} text files are read ({_endings(taken)}); {len(left)} are not ({_endings(left)}).",
        )


def _endings(files: Iterable[Path]) -> str:
    """``12 .txt.gz, 1 without ending``"""
    packed = Counter(ending(p.name) + (p.suffix.lower() if p.suffix.lower() in PACKED else "") for p in files)
    return ", ".join(
        f"{n} {name or 'without ending'}" for name, n in sorted(packed.items(), key=lambda item: (-item[1], item[0]))
    )


def short_name(path: str) -> str:
    """A name for what is made from a named corpus: ``wiki`` for ``data/wiki.txt.gz``, ``data`` for ``data/*.txt``."""
    if path == "-":
        return "stdin"
    if path.startswith(PREFIX):
        return re.split("[:@]", path.removeprefix(PREFIX))[0].rpartition("/")[2] or "corpus"
    if glob.has_magic(path) and not Path(path).exists():
        plain = [part for part in Path(path).parts if not glob.has_magic(part)]
        path = plain[-1] if plain and len(plain) < len(Path(path).parts) else "corpus"
    name = Path(inner_name(path)).name
    return Path(name).stem.strip("/\\") or "corpus"


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _pipe(path: Path, kind: Kind | None, field: str, once: bool) -> Pipe:
    if not once:
        raise DataError("This is a pipe or a device, and a corpus is read more than once.", where=str(path), hint=_ONCE_HINT)
    return Pipe(str(path), lambda: path.open("rb", buffering=0), kind=kind, field=field)


def _standard_input(kind: Kind | None, field: str, once: bool) -> Pipe:
    if not once:
        raise UsageError(
            "The standard input can be read once, and the text is read more than once here.", where="-", hint=_ONCE_HINT
        )
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "The standard input is a terminal.", where="-", hint="Give text through a pipe: `zcat a.gz | bertkit …`."
        )

    def opened() -> BinaryIO:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)

    return Pipe("stdin", opened, kind=kind, field=field)


def _once(found: Sequence[Source | Path]) -> list[Source | Path]:
    """Without what was named before."""
    seen: dict[object, Source | Path] = {}
    for each in found:
        seen.setdefault(each.resolve() if isinstance(each, Path) else each.name, each)
    if len(seen) < len(found):
        say("corpus-files", f"{len(found) - len(seen)} files were named more than once; each is read once.")
    return list(seen.values())


def _known(found: Iterable[Source | Path], kind: Kind | None, field: str) -> list[Source]:
    """The files with their formats; those known by their content are said."""
    sources: list[Source] = []
    looked: dict[Kind, list[Path]] = {}
    for each in found:
        if not isinstance(each, Path):
            sources.append(each)
            continue
        known, by_content = (kind, False) if kind is not None else file_kind(each)
        if by_content and known != "text":
            looked.setdefault(known, []).append(each)
        sources.append(TextFile(each, known, field))
    for known, files in looked.items():
        which = str(files[0]) + (f" and {len(files) - 1} other files are" if len(files) > 1 else " is")
        say("corpus-format", f"By content, {which} {WORDS[known]}. --set corpus.format=text reads plain text.")
    return sources
