"""What the processes of one run tell one another, and nothing that a single process would have to wait for.

Small numbers go over a gloo group on the host, so that agreeing on a step never waits for a GPU. Gradients are summed
here after the last micro-batch, by our own all-reduce over buckets and not by DDP's hooks: a process whose share is
empty runs no backward at all, and weights that no micro-batch of one process touched would leave DDP waiting for ever.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bertkit.errors import ResourceError

if TYPE_CHECKING:
    from accelerate import Accelerator

T = TypeVar("T")

BUCKET = 16 * 2**20
"""Numbers summed at once (64 MiB of float32): large enough for the wire, small beside the gradients themselves."""


class Peers:
    """The processes of one run, this one among them. Every method but the properties is called by all of them alike.

    Raises (all methods):
        ResourceError: Another process died or closed the connection.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.rank: int = accelerator.process_index
        self.world: int = accelerator.num_processes
        self.device: torch.device = accelerator.device
        self._host: dist.ProcessGroup | None = None
        if self.world > 1 and dist.get_backend() != "gloo":
            from bertkit.training.device import PATIENCE

            self._host = dist.new_group(backend="gloo", timeout=PATIENCE)
        if self.world > 1:
            atexit.register(_part, self._host)

    @property
    def main(self) -> bool:
        """Is this the process that writes files and speaks?"""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Adds up equally long lists of numbers (float64, so counts are exact) over all processes."""
        if self.world == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64)
        with _naming_the_lost():
            dist.all_reduce(numbers, group=self._host)
        return cast(list[float], numbers.tolist())

    def gather(self, value: T) -> list[T] | None:
        """Every process's value in order of rank, on the main process; None on the others."""
        if self.world == 1:
            return [value]
        found: list[T | None] | None = [None] * self.world if self.main else None
        with _naming_the_lost():
            dist.gather_object(value, found, dst=0, group=self._host)
        return cast("list[T] | None", found)

    def gather_all(self, value: T) -> list[T]:
        """Every process's value in order of rank, on every process."""
        return self.share(self.gather(value)) or []

    def share(self, value: T) -> T:
        """The main process's value, on every process."""
        if self.world == 1:
            return value
        box = [value if self.main else None]
        with _naming_the_lost():
            dist.broadcast_object_list(box, src=0, group=self._host)
        return cast(T, box[0])

    def main_only(self, work: Callable[[], T]) -> T:
        """Runs ``work`` on the main process; all get its result, or the error that it raised."""
        result: T | None = None
        error: Exception | None = None
        if self.main:
            try:
                result = work()
            except Exception as caught:
                error = caught
                if self.world == 1:
                    raise
        if self.world > 1:
            # The main process keeps its own error, with its traceback.
            result, error_there = self.share((result, error))
            error = error or error_there
        if error is not None:
            raise error
        return cast(T, result)

    def wait(self) -> None:
        """Returns when every process has come here."""
        self.total([0.0])

    def same_weights(self, model: nn.Module) -> None:
        """Gives every process the main process's weights and buffers."""
        if self.world > 1:
            with torch.no_grad(), _naming_the_lost():
                for tensor in [*model.parameters(), *model.buffers()]:
                    dist.broadcast(tensor.detach(), src=0)

    def sum_gradients(self, parameters: Sequence[nn.Parameter], extras: Tensor, *, failed: bool = False) -> Tensor | None:
        """Sums gradients in place and the small vector ``extras`` over all processes.

        A parameter that got no gradient here counts as zero; one that got none anywhere keeps none. None comes back,
        everywhere, where a process says that it ``failed`` (ran out of memory): then nothing was summed.
        """
        if self.world == 1:
            return None if failed else extras
        known = self.total([float(failed), *(float(each.grad is not None) for each in parameters)])
        if known[0]:
            return None
        touched = [each for each, count in zip(parameters, known[1:], strict=True) if count]
        for each in touched:
            if each.grad is None:
                each.grad = torch.zeros_like(each)
        with _naming_the_lost():
            dist.all_reduce(extras)
            for bucket in _buckets(cast(list[Tensor], [each.grad for each in touched])):
                flat = torch.cat([each.reshape(-1) for each in bucket])
                dist.all_reduce(flat)
                for gradient, summed in zip(bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True):
                    gradient.copy_(summed.view_as(gradient))
        return extras


def _part(host: dist.ProcessGroup | None) -> None:
    """Ends gloo's threads (None: the only group there is gloo's) while Python still runs.

    One of them that lets go of a tensor while the interpreter goes kills the process: SIGABRT behind a run that is done and well.
    """
    if dist.is_initialized():
        dist.destroy_process_group(host)


def _buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and size + tensor.numel() > BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel()
    if bucket:
        yield bucket


@contextmanager
def _naming_the_lost() -> Iterator[None]:
    """Torch reports a lost process as a RuntimeError about sockets."""
    try:
        yield
    except RuntimeError as error:
        words = str(error).lower()
        if any(sign in words for sign in ("connection", "socket", "timed out", "timeout", "peer", "nccl")):
            raise ResourceError(
                "Another process of this run is gone or does not answer.",
                where=str(error).splitlines()[0][:200],
                hint="Look for its last words above; the same command goes on from the newest checkpoint.",
            ) from error
        raise
