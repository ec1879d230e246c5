"""What a process has one of, and each side of a bench takes as its own: freed memory, and how float32 is multiplied."""

from __future__ import annotations

import torch

from bertkit.training.allocator import free_as_usual, keep_freed_memory


class OwnWays:
    """bertkit's, as they stand once the device is taken; :meth:`take` takes them again after another side's turn."""

    def __init__(self, device: torch.device) -> None:
        self._on_cpu = device.type == "cpu"
        self._products = torch.get_float32_matmul_precision()

    def take(self) -> None:
        """From now on the process is bertkit's."""
        if self._on_cpu:
            keep_freed_memory()
        torch.set_float32_matmul_precision(self._products)


def as_usual() -> None:
    """As everybody's process is: glibc takes memory back, and what is float32 is multiplied in float32."""
    free_as_usual()
    torch.set_float32_matmul_precision("highest")
