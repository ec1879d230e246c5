"""The one place where an Accelerator is made: device, processes, precision and trackers are its business.

Its loaders, its wrapped optimizers and schedulers, and its saved states are not used: bertkit's batches, schedules and
checkpoints are pure functions and plain files. What comes out is an ``accelerate.Accelerator`` whose ``device``,
``num_processes``, ``process_index``, ``mixed_precision`` and ``scaler`` the other rooms of training read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from pydantic import Field

from bertkit.errors import MissingError, SettingsError, UsageError, nearest
from bertkit.fields import Settings
from bertkit.notices import say
from bertkit.training import compiling
from bertkit.training import precision as numbers
from bertkit.training.allocator import keep_freed_memory
from bertkit.training.threads import allowed_cores, threads_to_use

if TYPE_CHECKING:
    from accelerate import Accelerator

PATIENCE = timedelta(hours=6)
"""How long a process waits for another before it gives up. Long, since one may build the data of all; a dead process
is noticed by :mod:`bertkit.training.watch`."""

REFUSED = {
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_TPU": "TPU",
    "ACCELERATE_USE_SAGEMAKER": "SageMaker",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "tensor or context parallelism",
}


class DeviceSettings(Settings):
    """Where a run computes and in which numbers."""

    precision: numbers.Asked = Field("auto", description="auto, fp32, bf16 or fp16; auto is bf16 where the hardware has it.")
    device: Literal["auto", "cpu"] = Field("auto", description="auto takes a GPU where there is one.")
    threads: int | None = Field(None, ge=1, description="CPU threads of each process; unset: cores divided by processes.")


class TrainingDeviceSettings(DeviceSettings):
    """The same for a training."""

    compile: compiling.Asked = Field("auto", description="auto, on or off: compile parts of each layer; auto is off so far.")


def make_accelerator(
    settings: DeviceSettings, *, report_to: Sequence[str] = (), folder: Path | None = None, scale: float | None = None
) -> Accelerator:
    """Makes the Accelerator of a run, once per process.

    Args:
        settings: What was asked for; ``became(accelerator)`` says what the precision is now.
        report_to: Trackers by Accelerate's names (``tensorboard``, ``wandb``); start them with ``Trackers``.
        folder: Where trackers that write files put them (or ``project_configuration.set_directories`` before they start).
        scale: The loss scale that fp16 starts with (default 2^16).

    Raises:
        UsageError: A launcher's configuration for FSDP, DeepSpeed, TPU and the like, or an unknown tracker.
        MissingError: A tracker that is not installed.
    """
    refuse_foreign_launchers(os.environ)
    _check_trackers(report_to)
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import GradientAccumulationPlugin, GradScalerKwargs, InitProcessGroupKwargs, TorchDynamoPlugin

    on_cpu = settings.device == "cpu" or not _has_accelerator()
    asked = _asked(settings.precision, os.environ)
    became = numbers.resolve(asked, local_device(on_cpu=on_cpu))
    threads = settings.threads or threads_to_use(allowed_cores(), os.environ)
    torch.set_num_threads(threads)
    # Accelerate keeps one state for a process and refuses a second run in other numbers; the processes stay joined.
    AcceleratorState._reset_state(reset_partial_state=not torch.distributed.is_initialized())
    with _environment({"OMP_NUM_THREADS": str(threads), "ACCELERATE_DYNAMO_BACKEND": "no", "ACCELERATE_MIXED_PRECISION": "no"}):
        accelerator = Accelerator(
            cpu=on_cpu,
            mixed_precision=numbers.NAMES[became],
            project_dir=None if folder is None else str(folder),
            # A launcher's accumulation would divide every loss again; micro-batches are counted in the loop.
            gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
            dynamo_plugin=TorchDynamoPlugin(backend="no"),
            kwargs_handlers=[
                InitProcessGroupKwargs(timeout=PATIENCE),
                GradScalerKwargs() if scale is None else GradScalerKwargs(init_scale=scale),
            ],
        )
    # Given to the constructor, trackers that write files would want their folder now; it may be claimed later.
    accelerator.log_with = list(report_to)
    if "XLA" in str(accelerator.distributed_type):
        raise UsageError("bertkit does not train on TPUs.", hint="Use CUDA devices or the CPU.")
    numbers.set_products(asked, accelerator.device)
    if accelerator.device.type == "cpu":
        keep_freed_memory()
    return accelerator


def became(accelerator: Accelerator) -> numbers.Became:
    """The precision that a run computes in: fp32, bf16 or fp16."""
    return cast(numbers.Became, {"no": "fp32"}.get(accelerator.mixed_precision, accelerator.mixed_precision))


def scaler_state(accelerator: Accelerator) -> dict[str, Any] | None:
    """The loss scaler's memory as plain numbers, for ``extra`` of a checkpoint; None without fp16."""
    return None if accelerator.scaler is None else dict(accelerator.scaler.state_dict())


def restore_scaler(accelerator: Accelerator, state: Mapping[str, Any] | None) -> None:
    """The inverse of :func:`scaler_state`; nothing where there is no scaler or no memory."""
    if accelerator.scaler is not None and state:
        accelerator.scaler.load_state_dict(dict(state))


def machine_differences(before: Mapping[str, str | int], now: Mapping[str, str | int]) -> list[str]:
    """What differs between two :func:`machine_facts`, in words: the run goes on, but not to the same bits."""
    return [f"{name} was {before[name]}, is {now.get(name)}" for name in before if before[name] != now.get(name)]


def machine_facts(accelerator: Accelerator) -> dict[str, str | int]:
    """What a run on a CPU must have in common with another to end in the same bits; kept in state.json."""
    device = accelerator.device
    return {
        "torch": str(torch.__version__),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else numbers.cpu_kind(),
        "threads": torch.get_num_threads(),
        "precision": became(accelerator),
        "processes": int(accelerator.num_processes),
    }


def refuse_foreign_launchers(environment: Mapping[str, str]) -> None:
    """Refuses by name what ``accelerate launch`` may have been set up for and bertkit does not do."""
    for variable, name in REFUSED.items():
        if environment.get(variable, "false").lower() in ("true", "1", "yes"):
            raise UsageError(
                f"The launcher is set up for {name}, which bertkit does not use.",
                where=variable,
                hint="Start it with torchrun, or run `accelerate config` again for plain multi-GPU or CPU training.",
            )
    if environment.get("ACCELERATE_MIXED_PRECISION", "").lower() == "fp8":
        raise UsageError("The launcher asks for fp8, which bertkit does not use.", where="ACCELERATE_MIXED_PRECISION")
    if environment.get("ACCELERATE_DYNAMO_BACKEND", "no").lower() not in ("no", ""):
        say("launcher", "The launcher asks for torch.compile; bertkit's batches change their shape each step, so it is left out.")


def _asked(asked: numbers.Asked, environment: Mapping[str, str]) -> numbers.Asked:
    """A launcher's bf16 or fp16 is somebody's wish where nothing else was asked for; its ``no`` is only its default."""
    launcher = environment.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    return cast(numbers.Asked, launcher) if asked == "auto" and launcher in ("bf16", "fp16") else asked


def _has_accelerator() -> bool:
    """Accelerate joins CPU processes only when told that there is nothing else, and says no word if it is not."""
    if os.environ.get("ACCELERATE_USE_CPU", "false").lower() in ("true", "1", "yes"):
        return False
    return torch.cuda.is_available() or torch.xpu.is_available() or torch.backends.mps.is_available()


def local_device(*, on_cpu: bool) -> torch.device:
    """The device that this process will be given."""
    if on_cpu:
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("xpu" if torch.xpu.is_available() else "mps")


def _check_trackers(names: Sequence[str]) -> None:
    if not names:
        return
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            known = ", ".join(sorted(LOGGER_TYPE_TO_CLASS))
            close = nearest(name, LOGGER_TYPE_TO_CLASS)
            raise SettingsError(f"There is no tracker {name!r}.{close}", where="--report-to", hint=f"It takes {known}.")
        if name not in [str(each) for each in get_available_trackers()]:
            raise MissingError(f"The tracker {name!r} is not installed.", where="--report-to", hint=f"pip install {name}")


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that Accelerate reads while it starts, and puts the person's own back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
