"""Reading and writing a Hugging Face model folder: config.json and weights, raw, without transformers and without pickle.

In comes a folder, out come a dictionary and tensors under the file's modern names; the other way round for writing. No
code of a folder is ever run: ``auto_map`` is not looked at, and a ``pytorch_model.bin`` is read under weights-only loading.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertkit.errors import MissingError, ModelError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
_PICKLE = "pytorch_model.bin"
_TENSORFLOW = ("*.ckpt.index", "*.ckpt.meta", "*.ckpt.data-*", "*.ckpt", "tf_model.h5", "*.ckpt-*.index", "flax_model.msgpack")


def read_config(folder: Path) -> dict[str, Any]:
    """The object of a folder's config.json, as it stands.

    Raises:
        MissingError: No such folder.
        ModelError: No config.json (or a TensorFlow checkpoint), or one that is no JSON object.
    """
    _must_be_model(folder)
    path = folder / CONFIG
    return _read_json(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path.name} is no valid JSON: {error}.", where=str(path)) from None
    if not isinstance(read, dict):
        raise ModelError(f"{path.name} must hold an object, not a {type(read).__name__}.", where=str(path))
    return read


def _must_be_model(folder: Path) -> None:
    if not folder.exists():
        raise MissingError(f"There is no model folder {folder}.", where=str(folder))
    if folder.is_file():
        raise ModelError(f"{folder.name} is a file; a model is a folder.", where=str(folder), hint=f"Give {folder.parent}.")
    found = {path.name for path in folder.iterdir()}
    if not found & {WEIGHTS, f"{WEIGHTS}.index.json", _PICKLE, f"{_PICKLE}.index.json"}:
        foreign = sorted({path.name for pattern in _TENSORFLOW for path in folder.glob(pattern)})
        if foreign:
            raise ModelError(
                f"{folder} holds a TensorFlow or Flax checkpoint ({foreign[0]}), which is not read.",
                where=str(folder),
                hint="Get the converted files (config.json, model.safetensors, vocab.txt) of the same model from the hub, for "
                "example google-bert/bert-base-uncased; google's small ones are google/bert_uncased_L-2_H-128_A-2 and the like.",
            )
        raise ModelError(
            f"{folder} is no model folder: it holds no {WEIGHTS}.", where=str(folder), hint="Give a run or a Hugging Face folder."
        )
    if CONFIG not in found:
        raise ModelError(f"{folder} is no model folder: it holds no {CONFIG}.", where=str(folder))


def tensor_names(folder: Path) -> set[str]:
    """The modern names of a folder's tensors: of safetensors files from their headers alone, whatever the weights take.

    Raises:
        MissingError, ModelError: As :func:`read_weights`, of what a header shows.
    """
    _must_be_model(folder)
    names = (modern_name(name) for path in _weight_files(folder) for name in _names_in(path))
    return {name for name in names if name is not None}


def _names_in(path: Path) -> Iterable[str]:
    if path.suffix != ".safetensors":
        return _read_file(path)  # a pickle has no header
    try:
        with safe_open(path, framework="pt") as opened:
            return list(opened.keys())
    except (SafetensorError, ValueError) as error:
        raise _damaged(path, error) from None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """A folder's tensors under modern names with ``bert.``; floating-point ones in fp32, ``position_ids`` left out.

    Raises:
        MissingError: No such folder.
        ModelError: No weights, a damaged file, a pickle that holds more than tensors, relative positions.
    """
    _must_be_model(folder)
    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        for name, tensor in _read_file(path).items():
            modern = modern_name(name)
            if modern is None:
                continue
            if "distance_embedding" in modern:
                raise ModelError(
                    "position_embedding_type is not 'absolute': the file holds distance_embedding tensors.",
                    where=f"{path}: {name}",
                )
            if modern in tensors:
                raise ModelError(f"The file holds {modern} twice, once under an old name.", where=f"{path}: {name}")
            tensors[modern] = tensor.float() if tensor.is_floating_point() else tensor
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    for name in (WEIGHTS, f"{WEIGHTS}.index.json", _PICKLE, f"{_PICKLE}.index.json"):
        path = folder / name
        if not path.exists():
            continue
        if not name.endswith(".json"):
            return [path]
        listed = _read_json(path).get("weight_map")
        if not isinstance(listed, dict) or not all(isinstance(shard, str) for shard in listed.values()):
            raise ModelError("The index holds no weight_map of names to files.", where=str(path))
        shards = sorted(set(listed.values()))
        for shard in shards:
            if Path(shard).name != shard or shard.startswith("."):
                raise ModelError(f"The index points out of its folder, to {shard!r}.", where=str(path))
            if not (folder / shard).is_file():
                raise ModelError(f"The index names {shard}, which is not there.", where=str(path))
        return [folder / shard for shard in shards]
    raise AssertionError("checked by _must_be_model")


def _read_file(path: Path) -> Mapping[str, Tensor]:
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (SafetensorError, ValueError, KeyError) as error:
            raise _damaged(path, error) from None
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler meets whatever a stranger wrote
        raise ModelError(
            f"{path.name} is refused: it is damaged, or a pickle that holds more than tensors ({type(error).__name__}).",
            where=str(path),
            hint="Get the model's safetensors file; files like this one can run code when they are opened.",
        ) from None
    if not isinstance(read, Mapping) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in read.items()):
        raise ModelError(f"{path.name} holds no plain mapping of names to tensors.", where=str(path))
    return read


def _damaged(path: Path, error: Exception) -> ModelError:
    return ModelError(f"{path.name} is damaged or no safetensors file: {error}.", where=str(path))


def modern_name(name: str) -> str | None:
    """Today's name of a tensor: with ``bert.`` and LayerNorm.weight/bias; None for ``position_ids``, which are always 0 … n-1."""
    if name.startswith(("embeddings.", "encoder.layer.", "pooler.")):
        name = f"bert.{name}"
    if name == "bert.embeddings.position_ids":
        return None
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return name


def write_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Writes a safetensors file, under another name first: the same bytes for the same tensors, metadata as transformers'."""
    # Parts of one fused matrix share its memory, which the format does not allow, so each is copied.
    apart = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in sorted(tensors.items())}
    half = path.with_name(f".{path.name}.part")
    save_file(apart, half, metadata={"format": "pt"})
    _settle(half, path)


def write_config(config: Mapping[str, Any], path: Path) -> None:
    """Writes config.json, keys sorted, as transformers lays it out."""
    half = path.with_name(f".{path.name}.part")
    half.write_text(
        json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8", newline="\n"
    )
    _settle(half, path)


def _settle(half: Path, path: Path) -> None:
    with half.open("rb+") as opened:
        os.fsync(opened.fileno())
    half.replace(path)
