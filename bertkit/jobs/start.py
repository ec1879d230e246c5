"""How every job that trains or scores begins: processes, device, and the run folder that the first process claims."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.hub import PREFIX
from bertkit.corpus.joined import store_folders
from bertkit.errors import BertkitError, FolderError, ResourceError, Stopped
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder, claim
from bertkit.jobs.lost import watching
from bertkit.jobs.places import any_inside
from bertkit.jobs.signals import StopNow
from bertkit.jobs.tentative import tentative
from bertkit.notices import say
from bertkit.settings.commands import Training
from bertkit.training import compiling
from bertkit.training.device import DeviceSettings, TrainingDeviceSettings, became, make_accelerator
from bertkit.training.peers import Peers

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator

CHECKPOINTS = "checkpoints"  # a run that has made this folder has begun: it is never taken back
TRIALS = "trials"  # nor is a sweep with a run in here


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a job runs: Accelerate's device and precision, and the processes of the run."""

    accelerator: Accelerator
    peers: Peers
    compile: compiling.Became = "off"

    @staticmethod
    def of(settings: DeviceSettings, *, report_to: tuple[str, ...] = ()) -> Machine:
        """Joins the processes that a launcher started and takes the device; once per process.

        Raises:
            ResourceError: Fewer processes came than were started, or there are fewer GPUs than processes (exit 5).
        """
        _check_gpus(settings)
        accelerator = make_accelerator(settings, report_to=report_to)
        started = int(os.environ.get("WORLD_SIZE") or 1)
        if accelerator.num_processes != started:
            raise ResourceError(
                f"{started} processes were started, and {accelerator.num_processes} came together.",
                hint="Start them with --processes or torchrun.",
            )
        compiled = settings.compile if isinstance(settings, TrainingDeviceSettings) else "off"
        return Machine(accelerator=accelerator, peers=Peers(accelerator), compile=compiling.resolve(compiled, accelerator.device))

    def as_before(self, folder: RunFolder, settings: Training) -> Machine:
        """The machine in the numbers that an unfinished run began in, where nobody says otherwise: it keeps what they became."""
        now, before = self.became, became_values(folder)
        kept = {name: before.get(f"device.{name}", now[f"device.{name}"]) for name in ("precision", "compile")}
        changed = {name: value for name, value in kept.items() if getattr(settings.device, name) == "auto"}
        if all(now[f"device.{name}"] == value for name, value in changed.items()):
            return self
        return Machine.of(settings.device.model_copy(update=changed), report_to=settings.run.report_to)

    @property
    def became(self) -> dict[str, str]:
        """What the automatic values of the machine are here, by dotted key."""
        return {"device.precision": self.precision, "device.compile": self.compile}

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


def _check_gpus(settings: DeviceSettings) -> None:
    """Says how many GPUs stay idle, and refuses more processes than there are GPUs."""
    import torch

    if settings.device == "cpu" or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes"):
        return
    there, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    if 0 < there < here:
        raise ResourceError(
            f"{here} processes need as many GPUs, and there are {there}.",
            hint=f"Use --processes {there}, or --set device.device=cpu.",
        )
    if 1 == here < there:
        say("idle-gpus", f"{there - 1} of {there} GPUs stay idle: --processes auto uses them all.")


def became_values(folder: RunFolder) -> dict[str, Any]:
    """What the automatic values of an unfinished run became when it began, by dotted key."""
    return dict(folder.state.get("resolved") or {}) if folder.situation == "unfinished" else {}


def input_sizes(paths: Iterable[str | None]) -> dict[str, int]:
    """The bytes of the files among ``paths``: what a finished run remembers, so that a changed file is no "already finished"."""
    return {path: Path(path).stat().st_size for path in paths if path is not None and Path(path).is_file()}


def corpus_sizes(paths: Iterable[str], settings: CorpusSettings) -> dict[str, int]:
    """As :func:`input_sizes` for what names a corpus: the bytes of all that a folder or a pattern names on the disk."""
    sizes = {}
    for path in paths:
        try:
            if stores := store_folders(Path(path)):
                size: int | None = sum(file.stat().st_size for store in stores for file in store.glob("*.bin"))
            else:
                size = None if path == "-" or path.startswith(PREFIX) else open_corpus([path], settings).bytes
        except BertkitError:  # it is said in its place, where the run needs it
            continue
        if size is not None:
            sizes[path] = size
    return sizes


def check_inputs(folder: RunFolder, sizes: Mapping[str, int]) -> None:
    """Did a finished run read files of these sizes?

    Raises:
        FolderError: One has changed since (exit 2).
    """
    before = folder.state.get("input_bytes") or {}
    for path, size in sizes.items():
        if path in before and before[path] != size:
            raise FolderError(
                f"{path} has changed since this run was finished: {before[path]:,} bytes before, {size:,} now.",
                where=str(folder.path),
                hint="Choose another --output, or start anew here with --overwrite.",
            )


@contextmanager
def claimed(
    settings: Training, console: Console, peers: Peers, *, command: str, name: str, facts: Mapping[str, Any] | None = None
) -> Iterator[RunFolder]:
    """The run folder as :func:`held` gives it, for a whole command: its other processes are watched meanwhile."""
    with held(settings, console, peers, command=command, name=name, facts=facts) as folder, watching(peers, console):
        yield folder


@contextmanager
def held(
    settings: Training, console: Console, peers: Peers, *, command: str, name: str, facts: Mapping[str, Any] | None = None
) -> Iterator[RunFolder]:
    """The run folder, claimed and locked by the first process; the others hold the same paths and write nothing.

    A run that fails or is stopped before its first step leaves nothing behind, so that it does not block the next try.

    Args:
        settings: As asked for.
        console: For the command line that is recorded.
        peers: The processes of the run.
        command: ``pretrain`` or ``finetune``.
        name: The default folder below ``runs/``.
        facts: More for bertkit.json.
    """
    path = Path(settings.output) if settings.output is not None else Path("runs") / name

    def take() -> RunFolder:
        taken: list[RunFolder] = []

        def first() -> tuple[Path, Any, dict[str, Any]]:
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

        where, situation, state = peers.main_only(first)
        return taken[0] if taken else RunFolder(where, situation, state, None)

    def begun(folder: RunFolder) -> bool:
        return not peers.main or CHECKPOINTS in folder.state.get("made", []) or any_inside(folder.path / TRIALS)

    with tentative(path, take, begun) as folder, _failing(folder):
        yield folder


@contextmanager
def _failing(folder: RunFolder) -> Iterator[None]:
    """Writes into bertkit.json how a run failed: no folder says "running" of a run that is over, unless it was killed."""
    try:
        yield
    except BaseException as error:
        if folder.writes and folder.state.get("state") == "running":
            stopped = isinstance(error, Stopped | StopNow | KeyboardInterrupt)
            facts = {"kind": getattr(error, "kind", "bug"), "message": str(getattr(error, "message", error))}
            with contextlib.suppress(OSError):  # what went wrong before is what is told
                folder.finish("stopped" if stopped else "failed", error=None if stopped else facts)
        raise
