"""How every job that trains or scores begins: processes, device, and the run folder that the first process claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder, claim
from bertkit.settings.commands import Training
from bertkit.training.device import DeviceSettings, became, make_accelerator
from bertkit.training.peers import Peers

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a job runs: Accelerate's device and precision, and the processes of the run."""

    accelerator: Accelerator
    peers: Peers

    @staticmethod
    def of(settings: DeviceSettings, *, report_to: tuple[str, ...] = ()) -> Machine:
        """Joins the processes that a launcher started and takes the device; once per process."""
        accelerator = make_accelerator(settings, report_to=report_to)
        return Machine(accelerator=accelerator, peers=Peers(accelerator))

    @property
    def device(self) -> torch.device:
        """The device that this process computes on."""
        device: torch.device = self.accelerator.device
        return device

    @property
    def on_cpu(self) -> bool:
        """Whether that is the CPU."""
        return self.device.type == "cpu"

    @property
    def precision(self) -> str:
        """fp32, bf16 or fp16."""
        return became(self.accelerator)

    @property
    def micro_tokens(self) -> int:
        """Tokens per forward pass where nobody says otherwise: what keeps 2 cores or a GPU busy without much memory."""
        return 4096 if self.on_cpu else 32768


@contextmanager
def claimed(
    settings: Training, console: Console, peers: Peers, *, command: str, name: str, facts: Mapping[str, Any] | None = None
) -> Iterator[RunFolder]:
    """The run folder, claimed and locked by the first process; the others hold the same paths and write nothing.

    Args:
        settings: As asked for.
        console: For the command line that is recorded.
        peers: The processes of the run.
        command: ``pretrain`` or ``finetune``.
        name: The default folder below ``runs/``.
        facts: More for bertkit.json.
    """
    path = Path(settings.output) if settings.output is not None else Path("runs") / name
    taken: list[RunFolder] = []

    def take() -> tuple[Path, Any, dict[str, Any]]:
        folder = claim(
            path,
            settings,
            command=command,
            named=settings.output is not None,
            line=console.line,
            overwrite=settings.overwrite,
            facts=facts,
        )
        taken.append(folder)
        return folder.path, folder.situation, folder.state

    where, situation, state = peers.main_only(take)
    with taken[0] if taken else RunFolder(where, situation, state, None) as folder:
        yield folder
