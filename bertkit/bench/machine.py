"""What the machine is and can do: named in words, and its matrix product measured, the ceiling of every share."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import torch

from bertkit.training.precision import Became, cpu_flags, cpu_kind, native_bf16

_SIDE = 2048
_TRIES = 10
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_TELLING = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")  # what decides how fast products are


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """A machine in words.

    Attributes:
        device: ``cpu`` or ``cuda``.
        name: The processor's or GPU's name.
        threads: CPU threads that torch computes with.
        features: Of the instructions that matter for products, those that it has.
        native_bf16: Does it multiply in bfloat16 itself?
        torch: torch's version.
    """

    device: str
    name: str
    threads: int
    features: tuple[str, ...]
    native_bf16: bool
    torch: str

    def __str__(self) -> str:
        return f"{self.name}, {self.threads} thread{'s' * (self.threads != 1)}, torch {self.torch}"

    def as_dict(self) -> dict[str, object]:
        """The facts by name."""
        return asdict(self)


def machine_facts(device: torch.device) -> MachineFacts:
    """What ``device`` is."""
    flags = cpu_flags()
    return MachineFacts(
        device=device.type,
        name=torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_kind(),
        threads=torch.get_num_threads(),
        features=tuple(name for name in _TELLING if name in flags),
        native_bf16=native_bf16(device),
        torch=torch.__version__,
    )


@torch.inference_mode()
def product_rate(device: torch.device, precision: Became) -> float:
    """FLOP/s of a matrix product, the best of ten of 2048 x 2048 x 2048 (8192 on CUDA, which smaller ones do not fill).

    Measured in the run and on the threads whose shares it is the ceiling of: machines of one name differ.
    """
    side = 4 * _SIDE if device.type == "cuda" else _SIDE
    a, b = (torch.randn(side, side, device=device, dtype=torch.float32).to(_TYPES[precision]) for _ in range(2))
    out = torch.mm(a, b)
    best = float("inf")
    for _ in range(_TRIES):
        _wait(device)
        began = time.perf_counter()
        torch.mm(a, b, out=out)
        _wait(device)
        best = min(best, time.perf_counter() - began)
    return 2.0 * side**3 / best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
