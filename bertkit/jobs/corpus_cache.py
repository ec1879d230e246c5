"""The token stores that are kept between runs: what lies there, and the removing of it.

CACHE/stores/FINGERPRINT/            a store
             .building-FINGERPRINT/  one whose build was stopped, or is going on
CACHE/vocabularies/ plans/           what is made again where it is wanted
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertkit.corpus.holding import is_being_made, is_held
from bertkit.corpus.store_files import read_facts
from bertkit.corpus.vocabulary import read_vocabulary
from bertkit.errors import BertkitError, MissingError, ResourceError, UsageError, nearest
from bertkit.jobs.building import cache_folder, plans_of_others, stores_folder
from bertkit.jobs.console import Console
from bertkit.jobs.layout import COLUMNS, cut
from bertkit.jobs.outcome import Outcome
from bertkit.notices import hushed

_NAME = 8  # hexadecimal digits that a name has at least
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_BUILDING = ".building-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One folder of the cache.

    Attributes:
        name: The first digits of its fingerprint, as many as tell it from the others.
        folder: Where it lies.
        state: ``whole``, ``unfinished`` (its build was stopped and can be gone on with), ``building``, or ``unreadable``
            (damaged, or of another version).
        facts: Its store.json; empty where it has none.
        bytes: Its size on the disk.
        used: When it was last used, seconds since 1970.
        lowercase: Its vocabulary's casing; None where nobody knows.
        in_use: A run or a build holds it.
    """

    name: str
    folder: Path
    state: Literal["whole", "unfinished", "building", "unreadable"]
    facts: dict[str, Any]
    bytes: int
    used: float
    lowercase: bool | None
    in_use: bool

    @property
    def text(self) -> str:
        """What it was made of, for people: names of files, and which shard."""
        names = [Path(name).name or name for name in self.facts.get("sources", [])]
        shard = self.facts.get("shard")
        return (", ".join(names) or "-") + (f" (shard {shard[0]}/{shard[1]})" if shard else "")

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        counts = self.facts.get("counts", {})
        return {
            "name": self.name,
            "path": self.folder,
            "state": self.state,
            "fingerprint": self.facts.get("fingerprint"),
            "sources": self.facts.get("sources", []),
            "shard": self.facts.get("shard"),
            "documents": counts.get("documents"),
            "tokens": counts.get("tokens"),
            "bytes": self.bytes,
            "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.used)),
            "vocabulary": {"size": self.facts.get("vocab_size"), "lowercase": self.lowercase},
            "in_use": self.in_use,
        }


def kept_stores() -> list[Kept]:
    """Everything in the cache, the last used first."""
    try:
        folders = [path for path in stores_folder().iterdir() if path.is_dir()]
    except OSError:
        return []
    digits = {path: path.name.removeprefix(_BUILDING) for path in folders}
    short = next(
        n for n in range(_NAME, 65) if n == 64 or len({name[:n] for name in digits.values()}) == len(set(digits.values()))
    )
    found = [_kept(path, name[:short]) for path, name in digits.items() if path.name[0] != "." or path.name.startswith(_BUILDING)]
    return sorted(found, key=lambda kept: (-kept.used, kept.name))


def _kept(folder: Path, name: str) -> Kept:
    building = folder.name.startswith(_BUILDING)
    making = building and is_being_made(folder.with_name(f"{folder.name}.lock"))
    facts: dict[str, Any] = {}
    state: Literal["whole", "unfinished", "building", "unreadable"] = "building" if making else "unfinished"
    if not building:
        try:
            facts, state = read_facts(folder), "whole"
        except BertkitError:
            state = "unreadable"
    return Kept(
        name=name,
        folder=folder,
        state=state,
        facts=facts,
        bytes=_size(folder),
        used=folder.stat().st_mtime,
        lowercase=_lowercase(folder) if facts else None,
        in_use=making or is_held(folder),
    )


def _lowercase(folder: Path) -> bool | None:
    try:
        with hushed("vocabulary-blank", "vocabulary-repeated", "added-token"):  # it was said when the store was built
            return read_vocabulary(folder, cased=None)[2].lowercase
    except BertkitError:
        return None


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:  # gone since
            continue
    return total


def find_store(name: str, kept: Sequence[Kept]) -> Kept:
    """The one store whose fingerprint begins with ``name``.

    Raises:
        MissingError: There is none (exit 4).
        UsageError: There are several (exit 2).
    """
    found = [each for each in kept if len(name) >= 4 and each.folder.name.removeprefix(_BUILDING).startswith(name.lower())]
    if len({each.folder.name.removeprefix(_BUILDING) for each in found}) > 1:
        raise UsageError(f"{name} begins the names of {len(found)} stores: {', '.join(each.name for each in found)}.", where=name)
    if not found:
        near = nearest(name, [each.name for each in kept])
        raise MissingError(f"There is no store {name} in the cache.{near}", where=str(stores_folder()), hint="bertkit corpus ls")
    return found[0]


def list_stores(console: Console) -> Outcome:
    """Prints the stores of the cache, the last used first."""
    kept = kept_stores()
    rows = [(each.name, _tokens(each), size_of(each.bytes), ago(time.time() - each.used), _vocabulary(each), "") for each in kept]
    header = ("store", "tokens", "size", "last use", "vocabulary", "")
    room = COLUMNS - sum(max(len(row[n]) for row in [*rows, header]) + 2 for n in range(5))
    shown = [(*row[:5], cut(each.text, room)) for row, each in zip(rows, kept, strict=True)]
    if kept:
        console.table(shown, header=(*header[:5], "text"))
    total = sum(each.bytes for each in kept)
    console.say(f"{len(kept)} stores, {size_of(total)}, in {stores_folder()}" if kept else f"No store is in {stores_folder()}")
    return Outcome(output=stores_folder(), extra={"stores": [each.as_dict() for each in kept], "bytes": total})


def _tokens(kept: Kept) -> str:
    if kept.state != "whole":
        return kept.state
    return f"{kept.facts['counts']['tokens']:,}"


def _vocabulary(kept: Kept) -> str:
    casing = {True: " uncased", False: " cased", None: ""}[kept.lowercase]
    return f"{kept.facts['vocab_size']:,}{casing}" if kept.facts else "-"


def remove_stores(
    console: Console, *, names: Sequence[str] = (), older_than: str | None = None, everything: bool = False
) -> Outcome:
    """Removes stores from the cache; those in use stay. A store that is wanted again is built again.

    By age, or all of them, the vocabularies that corpus commands trained and the plans for others' stores go with them.

    Args:
        console: Says what went.
        names: Beginnings of fingerprints; one in use is an error.
        older_than: Those not used for so long: ``30d`` (``m``, ``h``, ``d``, ``w``).
        everything: All of them.

    Raises:
        UsageError: Nothing says which, or both names and a rule do (exit 2).
        MissingError: There is no such store (exit 4).
        ResourceError: A store that is named is in use (exit 5).
    """
    if bool(names) + (older_than is not None) + everything != 1:
        raise UsageError(
            "Which stores? Name them, or give --older-than or --all.",
            where="bertkit corpus rm",
            hint="bertkit corpus ls shows them; bertkit corpus rm --older-than 30d",
        )
    kept = kept_stores()
    if names:
        chosen = [find_store(name, kept) for name in names]
    else:
        oldest = time.time() - (seconds(older_than) if older_than is not None else 0)
        chosen = [each for each in kept if everything or each.used < oldest]
        _remove_made_again(oldest)
    busy = [each for each in chosen if each.in_use]
    if busy and names:
        raise ResourceError(
            f"A run or a build is using {busy[0].name}.", where=str(busy[0].folder), hint="Wait until it ends, or stop it first."
        )
    _remove_left_overs()
    removed = [each for each in {each.folder: each for each in chosen}.values() if not each.in_use]
    for each in removed:
        _remove(each.folder)
    freed = sum(each.bytes for each in removed)
    console.result(f"Removed {len(removed)} {'store' if len(removed) == 1 else 'stores'}, {size_of(freed)}.")
    if busy:
        console.say(f"Left, as they are in use: {', '.join(each.name for each in busy)}")
    return Outcome(extra={"removed": [each.as_dict() for each in removed], "bytes": freed, "left": [each.name for each in busy]})


def _remove_made_again(oldest: float) -> None:
    """Vocabularies that were trained for a corpus command, plans of epochs of others' stores: made again where one is wanted."""
    for folder in [*(cache_folder() / "vocabularies").glob("*"), *plans_of_others().glob("*")]:
        if folder.stat().st_mtime <= oldest:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left_overs() -> None:
    """What commands that were killed left there a day ago or before."""
    for left in stores_folder().glob(".[ir]*ing-*"):
        if time.time() - left.stat().st_mtime > _SECONDS["d"]:
            shutil.rmtree(left, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Takes the name away first: nobody opens a store of which half is gone."""
    away = folder.with_name(f".removing-{folder.name.lstrip('.')}")
    folder.rename(away)
    shutil.rmtree(away)


def seconds(age: str) -> float:
    """``30d`` in seconds (``m``, ``h``, ``d``, ``w``).

    Raises:
        UsageError: It is no such time (exit 2).
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([mhdw])", age.strip())
    if match is None:
        raise UsageError(f"{age!r} is no time.", where="--older-than", hint="Give a number with m, h, d or w: --older-than 30d")
    return float(match[1]) * _SECONDS[match[2]]


def size_of(count: int) -> str:
    """Bytes as people read them: ``33 MB``."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if value >= 9.95 or unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def ago(elapsed: float) -> str:
    """How long ago, in its largest unit: ``3 days``."""
    for size, unit in ((86_400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if elapsed >= size:
            number = int(elapsed / size)
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return "now"
