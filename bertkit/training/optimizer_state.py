"""The optimizer's memory as named tensors: Adam's two moments under the names and shapes of the model's file.

Muon's matrices have the first alone, the mean of their gradients.

What is fused or padded inside the model is split and cut on the way out, and put together again on the way in, by the
same two functions that do it for the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from bertkit.errors import CheckpointError

ToFile = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""Tensors by the model's names and shapes, to the same by the file's."""
FromFile = Callable[[dict[str, Tensor], list[str]], dict[str, Tensor]]
"""Tensors by the file's names, and the model's names that are wanted of them, to tensors by the model's."""

MOMENTS = ("exp_avg", "exp_avg_sq")


def same_names(tensors: dict[str, Tensor], names: list[str] | None = None) -> dict[str, Tensor]:
    """For models whose names are those of their file, both ways."""
    return tensors if names is None else {name: tensors[name] for name in names if name in tensors}


def write_moments(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, to_file: ToFile = same_names) -> dict[str, int]:
    """Writes the moments of every parameter that has them; returns how often each was stepped, by the model's names."""
    named = {name: optimizer.state[each] for name, each in model.named_parameters() if each in optimizer.state}
    tensors: dict[str, Tensor] = {}
    for moment in MOMENTS:
        renamed = to_file({name: state[moment] for name, state in named.items() if moment in state})
        # Pieces of one fused tensor share its memory, which safetensors refuses.
        tensors |= {f"{moment}.{name}": each.detach().cpu().contiguous().clone() for name, each in renamed.items()}
    save_file(tensors, path, metadata={"format": "pt"})
    return {name: int(state["step"]) for name, state in named.items() if "step" in state}


def read_moments(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: Mapping[str, int],
    from_file: FromFile = same_names,
) -> None:
    """Puts what :func:`write_moments` wrote back into a fresh optimizer.

    Raises:
        CheckpointError: The file is damaged, or its tensors are not this model's.
    """
    tensors = _read(path)
    known = dict(model.named_parameters())
    turned = {each for group in optimizer.param_groups if group.get("orthogonal") for each in group["params"]}
    names = {MOMENTS[0]: list(steps), MOMENTS[1]: [name for name in steps if known.get(name) not in turned]}
    found = {moment: _moment(path, tensors, moment, names[moment], from_file) for moment in MOMENTS}
    # AdamW keeps its count where its kernel wants it: beside the weights when fused, else on the host.
    fused = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    for name, count in steps.items():
        parameter = known.get(name)
        moments = {moment: found[moment].get(name) for moment in MOMENTS if name in names[moment]}
        if parameter is None or any(each is None or each.shape != parameter.shape for each in moments.values()):
            raise CheckpointError(f"The optimizer's state does not fit the model at {name!r}.", where=str(path))
        state = optimizer.state[parameter]
        state["step"] = torch.tensor(float(count), dtype=torch.float32, device=parameter.device if fused else "cpu")
        for moment, each in moments.items():
            assert each is not None
            state[moment] = each.to(parameter.device, parameter.dtype).clone(memory_format=torch.preserve_format)


def _moment(path: Path, tensors: dict[str, Tensor], moment: str, names: list[str], from_file: FromFile) -> dict[str, Tensor]:
    theirs = {name.removeprefix(f"{moment}."): each for name, each in tensors.items() if name.startswith(f"{moment}.")}
    try:
        return from_file(theirs, names)
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"The optimizer's state does not fit the model: {error}", where=str(path)) from error


def _read(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"The optimizer's state cannot be read: {error}", where=str(path)) from error
