"""Which numbers a run computes in: what was asked for, and what that becomes on this hardware.

Weights, gradients and optimizer state are float32 whatever comes out of here: bf16 and fp16 speak of the products alone.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Literal

import torch

from bertkit.errors import SettingsError
from bertkit.notices import say

Asked = Literal["auto", "fp32", "bf16", "fp16"]
Became = Literal["fp32", "bf16", "fp16"]

NAMES: dict[Became, str] = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}
"""Ours to Accelerate's."""


def cpu_flags() -> frozenset[str]:
    """The features that the processor names in /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def cpu_kind() -> str:
    """The processor in words, with the vector width that torch uses: two machines of one kind compute alike to the bit."""
    model = platform.machine()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        model = next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or model
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}"


def native_bf16(device: torch.device, flags: frozenset[str] | None = None) -> bool:
    """Does the hardware multiply in bfloat16 itself? CUDA from Ampere on; CPUs with AVX512-BF16 or AMX.

    Elsewhere bfloat16 is emulated: hundreds of times slower than float32 on a CPU.
    """
    if device.type == "cuda":
        return bool(torch.version.hip) or torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        return not (cpu_flags() if flags is None else flags).isdisjoint({"avx512_bf16", "amx_bf16"})
    return False


def resolve(asked: Asked, device: torch.device, *, flag: str = "--precision") -> Became:
    """What ``asked``, by ``flag``, becomes on ``device``.

    Raises:
        SettingsError: fp16 away from CUDA, where there is no loss scaler.
    """
    if asked == "fp16" and device.type != "cuda":
        raise SettingsError(f"fp16 needs a CUDA device, and this run is on {device.type}.", where=flag, hint=f"Use {flag} auto.")
    if asked == "auto":
        return "bf16" if native_bf16(device) else "fp32"
    if asked == "bf16" and not native_bf16(device):
        say("precision", f"bf16 is emulated on this {device.type} device and may be hundreds of times slower than fp32.")
    return asked


def set_products(asked: Asked, device: torch.device) -> None:
    """How matrices that are float32 are multiplied: where fp32 is asked for in float32, whatever the hardware has.

    ``auto`` says what it takes instead: TF32 on CUDA from Ampere on; bfloat16 (torch's ``medium``) on CPUs that multiply in
    it themselves.
    """
    fast = asked == "auto" and native_bf16(device)
    left = {"cuda": ("high", "in TF32"), "cpu": ("medium", "in bf16 too")}
    level, words = left[device.type] if fast else ("highest", "")
    torch.set_float32_matmul_precision(level)
    if fast:
        say("precision", f"Precision auto: products in bf16, those left in float32 {words} (--precision fp32 turns both off).")
