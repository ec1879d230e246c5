"""A transformers model as a session of onnxruntime: exported, optimised as its sessions do by themselves, in fp32."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.errors import MissingError

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Session:
    """``session({"input_ids": [S, L], …}) -> [S, K]`` logits."""

    inputs = _INPUTS

    def __init__(self, made: Any) -> None:
        self._made = made

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Logits ``[S, K]`` of padded batches ``[S, L]`` int64."""
        found: np.ndarray = self._made.run(None, inputs)[0]
        return found


class _Logits(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        found: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits
        return found


def session(folder: Path, *, threads: int) -> Session:
    """The classifier of ``folder``.

    Raises:
        MissingError: onnxruntime, or what exports for it, is not installed (exit 4).
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingError(
            f"{error.name} is not installed.", where="--vs onnxruntime", hint='pip install "bertkit[onnx]"'
        ) from error
    from bertkit.bench import reference

    reference.quiet()
    model = _Logits(reference.load(folder, "classification").eval())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "model.onnx"
        _export(model, file)
        return Session(onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"]))


def dynamic_shapes(positions: int) -> tuple[dict[int, Any], ...]:
    """Of each input ``[S, L]``: any count of sequences, of any length that the model has ``positions`` for."""
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=positions)
    return tuple({0: batch, 1: length} for _ in _INPUTS)


def _export(model: _Logits, file: Path) -> None:
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in _INPUTS)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(),
            example,
            file,
            input_names=list(_INPUTS),
            output_names=["logits"],
            dynamic_shapes=dynamic_shapes(model.model.config.max_position_embeddings),
            dynamo=True,
            external_data=False,
        )
