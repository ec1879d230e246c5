"""Data sets of the hub as plain records: the ``datasets`` library stands behind this one file, and is loaded when called.

Files given locally never come here. Without a network the cache serves; without a cache the answer comes in seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, DataError, MissingError

CONVERTED = "refs/convert/parquet"
"""The branch in which the hub keeps a Parquet copy of sets that were scripts: a folder for each configuration."""

_PROBE_SECONDS = 5.0
_BATCH = 1000


def load_hub(name: str, *, config: str | None = None, revision: str | None = None, files: str = "the files") -> dict[str, Any]:
    """Every split of a data set, by name; :func:`hub_records` reads one.

    Args:
        name: ``owner/name`` on the hub.
        config: Its configuration, where it has several.
        revision: Branch or commit; :data:`CONVERTED` for sets that were scripts.
        files: What to give instead, for the error: "train.tsv, dev.tsv".

    Raises:
        MissingError: No network and nothing cached, or no such data set (exit 4).
        DataError: Its files cannot be read (exit 3).
    """
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise MissingError(
            "The datasets library is not installed.", hint=f"`pip install datasets`, or give {files} with --data."
        ) from error
    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]
    try:
        with offline_unless_reachable():
            if revision == CONVERTED:
                return _load_converted(name, config)
            return dict(datasets.load_dataset(name, config, revision=revision))
    except Exception as error:
        raise _explained(error, name, files) from error


def _load_converted(name: str, config: str | None) -> dict[str, Any]:
    """Splits of the converted branch, ``CONFIG/SPLIT/0000.parquet``; datasets itself would not find its cached copy offline."""
    import datasets
    import huggingface_hub

    config = config or "default"
    folder = huggingface_hub.snapshot_download(name, repo_type="dataset", revision=CONVERTED, allow_patterns=[f"{config}/*"])
    splits = {split.name: sorted(map(str, split.glob("*.parquet"))) for split in sorted((Path(folder) / config).glob("*"))}
    return dict(datasets.load_dataset("parquet", data_files=splits))


def hub_records(split: Any) -> Iterator[Mapping[str, Any]]:
    """The records of one split, integer classes as their names, hidden ones (-1) as None."""
    names = {column: known for column, feature in split.features.items() if (known := _class_names(feature))}
    for batch in split.iter(batch_size=_BATCH):
        columns = {
            column: [_named(value, names[column]) for value in values] if column in names else values
            for column, values in batch.items()
        }
        for cells in zip(*columns.values(), strict=True):
            yield dict(zip(columns, cells, strict=True))


def _class_names(feature: Any) -> list[str] | None:
    """Names of a class feature, or of a list of classes."""
    while hasattr(feature, "feature"):
        feature = feature.feature
    known = getattr(feature, "names", None)
    return list(known) if known else None


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    if not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None


@contextmanager
def offline_unless_reachable() -> Iterator[None]:
    """Tries the endpoint once for a few seconds; where it does not answer, the libraries go to their cache at once.

    Left to themselves they retry for half a minute before they look there.
    """
    import datasets
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE or datasets.config.HF_HUB_OFFLINE:
        yield
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=_PROBE_SECONDS)
    except Exception:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = False
    else:
        yield


def _explained(error: Exception, name: str, files: str) -> BertkitError:
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    instead = f"Give {files} with --data DIR, or your own with --train-file and --validation-file."
    if isinstance(error, DatasetNotFoundError | RepositoryNotFoundError):
        return MissingError(f"There is no data set {name!r} on the hub, or it is not open to you.", where=endpoint, hint=instead)
    if isinstance(error, ConnectionError | TimeoutError | LocalEntryNotFoundError):
        return MissingError(
            f"The data set {name!r} cannot be fetched (no answer, or HF_HUB_OFFLINE is set), and the cache has no copy.",
            where=endpoint,
            hint=f"{instead} HF_ENDPOINT names a mirror; HF_HUB_OFFLINE=1 uses the cache alone.",
        )
    if isinstance(error, FileNotFoundError):
        return MissingError(f"The data set {name!r} is neither a folder here nor on the hub.", where=endpoint, hint=instead)
    return DataError(f"The data set {name!r} cannot be read: {type(error).__name__}: {error}", where=endpoint, hint=instead)
