"""Data sets of the hub as sources: the files behind a split are found once and read where they lie, block by block.

The ``datasets`` library says which files a configuration and a split have; they are read by the readers of local files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO

from bertkit.corpus.kinds import Kind, ending, kind_by_name, stream_spans
from bertkit.corpus.lines import Span
from bertkit.corpus.records import parquet_spans
from bertkit.corpus.sources import Told
from bertkit.corpus.unpacked import PACKED, UNPACKING, Unpacked
from bertkit.errors import BertkitError, DataError, MissingError, UsageError, nearest
from bertkit.notices import say

PREFIX = "hf:"
CONVERTED = "refs/convert/parquet"
"""The branch in which the hub keeps a Parquet copy of sets that were scripts: CONFIGURATION/SPLIT/0000.parquet."""

_NAME = re.compile(r"hf:(?P<set>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^:]+))?(?::(?P<config>[^:]*))?(?::(?P<split>[^:]+))?")
_PROBE_SECONDS = 5.0
_BLOCK = 8 << 20  # bytes fetched at once


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file of a data set on the hub.

    Attributes:
        dataset: ``owner/name``.
        revision: The commit that is read.
        path: The file in it.
        size: Its bytes.
        kind: Its format.
        field: The field of the text.
    """

    dataset: str
    revision: str
    path: str
    size: int
    kind: Kind
    field: str

    once = False
    stamp = None  # its revision never changes

    @property
    def name(self) -> str:
        """``hf:owner/name/path``."""
        return f"{PREFIX}{self.dataset}/{self.path}"

    @property
    def text_bytes(self) -> int:
        """Bytes of its text: a guess where it is packed."""
        packed = self.kind == "parquet" or PurePath(self.path).suffix.lower() in PACKED
        return self.size * (UNPACKING if packed else 1)

    @property
    def marked(self) -> bool:
        """Every format but plain text marks its documents."""
        return self.kind != "text"

    def digest(self, told: Told | None = None) -> str:
        """The commit and the path: what lies there never changes."""
        if told:
            told(self.size)
        return f"{self.kind}:hub:{self.revision}:{self.path}"

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """See :class:`bertkit.corpus.sources.Source`.

        Raises:
            MissingError: The hub does not answer (exit 4).
            DataError: The file's content is wrong.
        """
        try:
            with self._open() as file:
                if self.kind == "parquet":
                    yield from parquet_spans(file, self.field, self.name, self.size, replace=replace)
                else:
                    yield from stream_spans(Unpacked(file, self.name), self.kind, self.field, replace=replace)
        except BertkitError:
            raise
        except Exception as error:
            if not _of_the_network(error):
                raise
            raise _unreachable(self.name, f"the connection failed: {error}") from error

    def _open(self) -> BinaryIO:
        from huggingface_hub import HfFileSystem

        url = f"datasets/{self.dataset}@{self.revision}/{self.path}"
        file: BinaryIO = HfFileSystem().open(url, "rb", block_size=_BLOCK)
        return file


def hub_sources(named: str, *, kind: Kind | None, field: str) -> list[HubFile]:
    """The files of ``hf:owner/name[@revision][:configuration][:split]``, in the data set's order; the split is ``train``.

    Raises:
        UsageError: The name is no such name.
        MissingError: No network, or no such data set, configuration or split (exit 4).
        DataError: Its files are of a format that is not read.
    """
    match = _NAME.fullmatch(named)
    if match is None:
        raise UsageError(
            "A data set of the hub is named hf:owner/name, hf:owner/name:configuration or hf:owner/name:configuration:split.",
            where=named,
        )
    dataset, split = match["set"], match["split"] or "train"
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise MissingError("The datasets library is not installed.", where=named, hint="`pip install datasets`.") from error
    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]
    _check_reachable(named)
    try:
        files = _files(dataset, match["revision"], match["config"] or None, split)
    except BertkitError:
        raise
    except Exception as error:
        raise _explained(error, named, dataset) from error
    return [HubFile(**file, kind=kind or _kind(file["path"], named), field=field) for file in files]


def _kind(path: str, named: str) -> Kind:
    kind = kind_by_name(path)
    if kind is None and ending(path) not in (".txt", ""):
        raise DataError(
            f"The data set's files are {ending(path)} files, and text is read from Parquet, JSON lines and plain text.",
            where=f"{named}, {path}",
        )
    return kind or "text"


def _files(dataset: str, revision: str | None, config: str | None, split: str) -> list[dict[str, Any]]:
    """Commit, path and size of each file of a split."""
    import datasets
    from huggingface_hub import HfApi, HfFileSystem

    commit = HfApi().dataset_info(dataset, revision=revision).sha
    try:
        builder = datasets.load_dataset_builder(dataset, config, revision=commit)
        parts = {str(name): list(urls) for name, urls in (builder.config.data_files or {}).items()}
    except RuntimeError as error:
        if "script" not in str(error):
            raise
        return _converted_files(dataset, config, split)
    except ValueError as error:
        known = datasets.get_dataset_config_names(dataset, revision=commit)
        if config in known:
            raise
        raise _no_such("configuration", config, known, dataset) from error
    if split not in parts:
        raise _no_such("split", split, list(parts), dataset)
    root, system = f"hf://datasets/{dataset}@{commit}/", HfFileSystem()
    sizes = {url: system.info(url)["size"] for url in parts[split]}
    return [{"dataset": dataset, "revision": commit, "path": url.removeprefix(root), "size": size} for url, size in sizes.items()]


def _converted_files(dataset: str, config: str | None, split: str) -> list[dict[str, Any]]:
    """The files of a data set that was a script: the hub's own Parquet copy."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    commit = HfApi().dataset_info(dataset, revision=CONVERTED).sha
    listed = HfApi().list_repo_tree(dataset, recursive=True, revision=commit, repo_type="dataset")
    parts: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for entry in listed:
        place = entry.path.split("/")
        if isinstance(entry, RepoFile) and len(place) == 3 and place[2].endswith(".parquet"):
            parts.setdefault((place[0], place[1]), []).append((entry.path, entry.size))
    configs = sorted({name for name, _ in parts})
    config = config or (configs[0] if len(configs) == 1 else "default")
    if config not in configs:
        raise _no_such("configuration", config, configs, dataset)
    found = parts.get((config, split))
    if found is None and (found := parts.get((config, f"partial-{split}"))) is not None:
        say("partial-data-set", f"Of {dataset}, whose files are made by a script, the hub has only the first part as Parquet.")
    if found is None:
        raise _no_such("split", split, [name for of, name in parts if of == config], dataset)
    return [{"dataset": dataset, "revision": commit, "path": path, "size": size} for path, size in sorted(found)]


def _no_such(what: str, name: str | None, known: Sequence[str], dataset: str) -> MissingError:
    shown = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")
    missing = f"{dataset} has several {what}s." if name is None else f"{dataset} has no {what} {name!r}.{nearest(name, known)}"
    form = f"{PREFIX}{dataset}:CONFIGURATION" + (":SPLIT" if what == "split" else "")
    return MissingError(missing, where=PREFIX + dataset, hint=f"It has {shown}; name one as {form}.")


def _check_reachable(named: str) -> None:
    """Tries the endpoint once for a few seconds: left to themselves the libraries retry for half a minute.

    Raises:
        MissingError: It does not answer, or HF_HUB_OFFLINE is set.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        raise _unreachable(named, "HF_HUB_OFFLINE is set")
    try:
        get_session().head(constants.ENDPOINT, timeout=_PROBE_SECONDS)
    except Exception as error:
        raise _unreachable(named, f"{constants.ENDPOINT} does not answer") from error


def _unreachable(named: str, why: str) -> MissingError:
    return MissingError(
        f"The data set cannot be read: {why}.",
        where=named,
        hint="A data set of the hub is streamed, so it needs the network: HF_ENDPOINT names a mirror, HF_HUB_OFFLINE=0 allows "
        "the network. Or name files of your own.",
    )


def _of_the_network(error: Exception) -> bool:
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "requests")


def _explained(error: Exception, named: str, dataset: str) -> BertkitError:
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, DatasetNotFoundError | RepositoryNotFoundError):
        return MissingError(f"There is no data set {dataset!r} on the hub, or it is not open to you.", where=named)
    if isinstance(error, RevisionNotFoundError):
        return MissingError(f"{dataset} has no such revision.", where=named)
    if _of_the_network(error):
        return _unreachable(named, f"the connection failed: {error}")
    return DataError(f"The data set's files are not known: {type(error).__name__}: {error}", where=named)
