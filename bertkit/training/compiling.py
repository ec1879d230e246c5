"""``--compile``: what torch's compiler is asked for, and whether it is.

What is compiled is the part of a layer that knows no sequence (:meth:`bertkit.model.encoder.Layer.finish`): sums, dropout,
LayerNorm and activation in fewer passes over memory, once for any count of tokens. Attention and losses are written by hand.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Literal

import torch
from torch import nn

from bertkit.model.encoder import Layer
from bertkit.notices import say

Asked = Literal["auto", "on", "off"]
Became = Literal["on", "off"]


def resolve(asked: Asked, device: torch.device) -> Became:
    """What ``asked`` becomes on ``device``.

    ``auto`` is off. On a CPU with AVX2 the compiled parts gained nothing at width 512, at 128 the measurements do not tell, with
    AVX512-BF16 they gained nothing, and compiling took 10 to 53 seconds of a start (docs/speed.md); CUDA was not measured.
    """
    if asked != "on":
        return "off"
    if lacks := _lacks(device):
        say("compile", f"Nothing is compiled: {lacks}.")
        return "off"
    return "on"


def _lacks(device: torch.device) -> str | None:
    """What torch's compiler lacks here, in words."""
    if device.type == "cpu":
        names = [name for name in (os.environ.get("CXX"), "g++", "clang++", "c++") if name]
        return None if any(map(shutil.which, names)) else "there is no C++ compiler (g++ or clang++)"
    if device.type == "cuda":
        return None if importlib.util.find_spec("triton") else "Triton is not installed"
    return f"torch's compiler is not used on {device.type}"


def compile_layers(model: nn.Module) -> None:
    """Compiles the layers of a model, at their first step; what cannot be compiled computes as before, with torch's warning."""
    import torch._dynamo  # seconds, and for nobody else

    torch._dynamo.config.suppress_errors = True
    for part in model.modules():
        if isinstance(part, Layer):
            part.compile_finish()
