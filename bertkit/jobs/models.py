"""From what a person calls a model (a run, a folder, a hub name) to a folder on this disk, its tokenizer and its labels."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import BertkitError, MissingError, ModelError
from bertkit.model.config import EncoderConfig
from bertkit.model.hf import read_config
from bertkit.training.checkpoint import MANIFEST, verify

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_FILES = ("config.json", "model.safetensors", "model.safetensors.index.json", "model-*.safetensors")
_TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_PROBE_SECONDS = 5.0


def model_folder(name: str) -> Path:
    """The folder of a model; a hub name is fetched (or taken from the cache).

    Raises:
        MissingError: No such folder, and no such model on the hub or no network (exit 4).
        ModelError: A folder that is no model (exit 3).
        CheckpointError: A checkpoint of a run that is cut or changed (exit 3).
    """
    path = Path(name)
    if path.is_dir():
        if (path / MANIFEST).is_file():
            verify(path, weights_alone=True)
        return path
    if path.exists():
        raise ModelError("A model is a folder with config.json and weights, and this is a file.", where=name)
    looks_like_a_path = name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name
    if looks_like_a_path or not _HUB_NAME.fullmatch(name):
        raise MissingError(f"There is no model folder {name!r}.", where=name, hint="Check the path.")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    """A snapshot of the hub's model: safetensors where it has them, else pytorch_model.bin (read under weights-only loading)."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    def get(patterns: tuple[str, ...], *, local: bool) -> Path:
        return Path(
            huggingface_hub.snapshot_download(
                name, allow_patterns=list(patterns), local_files_only=local, etag_timeout=_PROBE_SECONDS
            )
        )

    offline = huggingface_hub.constants.HF_HUB_OFFLINE
    disable_progress_bars()
    try:
        if not offline and not _reachable():
            offline = True
        folder = get(_FILES + _TOKENIZER, local=offline)
        if not any(folder.glob("*.safetensors")):
            folder = get((*_FILES, *_TOKENIZER, "pytorch_model.bin", "pytorch_model*.bin*"), local=offline)
        return folder
    except BertkitError:
        raise
    except LocalEntryNotFoundError as error:
        why = "HF_HUB_OFFLINE is set" if huggingface_hub.constants.HF_HUB_OFFLINE else "the hub does not answer"
        raise MissingError(
            f"The model {name!r} is no folder here, it is not in the cache, and {why}.",
            where=os.environ.get("HF_ENDPOINT", "the Hugging Face hub"),
            hint="Give a folder with config.json, model.safetensors and vocab.txt in its place; "
            "HF_ENDPOINT names a mirror, HF_HUB_OFFLINE=1 takes the cache alone.",
        ) from error
    except Exception as error:
        raise MissingError(
            f"The model {name!r} is no folder here and cannot be had from the hub: {type(error).__name__}.",
            where=os.environ.get("HF_ENDPOINT", "the Hugging Face hub"),
            hint="Check the name, or give a folder with config.json, model.safetensors and vocab.txt in its place; "
            "HF_ENDPOINT names a mirror.",
        ) from error


def _reachable() -> bool:
    """Asks the endpoint once, so that a machine without a network hears so in seconds and not after retries."""
    from huggingface_hub.constants import ENDPOINT

    address = urlsplit(ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_PROBE_SECONDS):
            return True
    except OSError:
        # A proxy may know the way where this machine's own resolver does not.
        return any(os.environ.get(name) for each in (f"{address.scheme}_proxy", "all_proxy") for name in (each, each.upper()))


def tokenizer_of(folder: Path, *, cased: bool | None = None) -> WordPiece:
    """The tokenizer of a model folder.

    Raises:
        UsageError: The files do not say whether case is kept: --cased or --uncased must (exit 2).
        ModelError: A vocabulary without BERT's special tokens, or with more entries than the model has (exit 3).
    """
    wordpiece = load_wordpiece(folder, cased=cased)
    check_vocabulary(wordpiece, config_of(folder), str(folder))
    return wordpiece


def check_vocabulary(wordpiece: WordPiece, config: EncoderConfig, where: str) -> None:
    """Refuses a vocabulary with ids that the model has no row for; one with fewer entries is fine.

    Raises:
        ModelError: Both counts are named (exit 3).
    """
    entries = max(number for number, token in enumerate(wordpiece.vocabulary, 1) if token)  # blank lines behind give no id
    if entries > config.vocab_size:
        raise ModelError(
            f"The vocabulary has {entries:,} entries, and the model only {config.vocab_size:,} (vocab_size).",
            where=where,
            hint="Use the vocabulary that the model was trained with.",
        )


def config_of(folder: Path) -> EncoderConfig:
    """The folder's config.json, checked.

    Raises:
        ModelError: No BERT encoder, or a field that cannot be served.
    """
    return EncoderConfig.read(read_config(folder), str(folder / "config.json"))
