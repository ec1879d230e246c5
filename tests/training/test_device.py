"""Where a run computes, in which numbers and threads, and which launchers are refused."""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from toy_training import Toy, ToyRun, ToySource, batch_of

from bertkit.errors import MissingError, SettingsError, UsageError
from bertkit.notices import collecting
from bertkit.training import device as module
from bertkit.training import precision
from bertkit.training.device import (
    DeviceSettings,
    became,
    machine_differences,
    machine_facts,
    make_accelerator,
    restore_scaler,
    scaler_state,
)
from bertkit.training.loop import prepare
from bertkit.training.precision import cpu_flags, native_bf16, resolve
from bertkit.training.threads import allowed_cores, threads_to_use
from bertkit.training.trackers import Trackers

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("ACCELERATE_USE_FSDP", "true", "FSDP"),
        ("ACCELERATE_USE_DEEPSPEED", "true", "DeepSpeed"),
        ("ACCELERATE_USE_MEGATRON_LM", "true", "Megatron"),
        ("ACCELERATE_USE_TPU", "true", "TPU"),
        ("ACCELERATE_MIXED_PRECISION", "fp8", "fp8"),
    ],
)
def test_launchers_for_what_bertkit_does_not_do_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=name) as caught:
        make_accelerator(DeviceSettings(device="cpu"))
    assert caught.value.exit_code == 2
    assert caught.value.where == variable


def test_bf16_is_native_where_the_flags_say_so() -> None:
    assert native_bf16(CPU, frozenset({"avx2", "avx512_bf16"}))
    assert native_bf16(CPU, frozenset({"amx_tile", "amx_bf16"}))
    assert not native_bf16(CPU, frozenset({"avx2", "avx512f"}))
    lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")]
    assert cpu_flags() == set(lines[0].split()[2:])


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_follows_the_hardware(monkeypatch: pytest.MonkeyPatch, native: bool, expected: str) -> None:
    monkeypatch.setattr(precision, "native_bf16", lambda device: native)
    assert resolve("auto", CPU) == expected
    with collecting() as heard:
        assert resolve("bf16", CPU) == "bf16"
    assert bool(heard) is not native  # emulated bf16 is said
    assert resolve("fp32", CPU) == "fp32"
    with pytest.raises(SettingsError, match="CUDA"):
        resolve("fp16", CPU)


def test_float32_stays_float32_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto may multiply in less where the processor does so itself, and says so; fp32 and plain AVX2 never."""
    for native, asked, expected in ((True, "auto", "medium"), (True, "fp32", "highest"), (False, "auto", "highest")):
        monkeypatch.setattr(precision, "native_bf16", lambda device, native=native: native)
        with collecting() as heard:
            precision.set_products(cast(Any, asked), CPU)
        assert torch.get_float32_matmul_precision() == expected
        assert any("float32" in notice.message for notice in heard) == (expected == "medium")
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("launcher", "asked", "native", "expected"),
    [
        ("no", "auto", True, "bf16"),  # a launcher's no is only its default
        ("no", "bf16", False, "bf16"),
        ("bf16", "auto", False, "bf16"),
        ("bf16", "fp32", True, "fp32"),
        (None, "auto", False, "fp32"),
    ],
)
def test_launchers_precision(
    monkeypatch: pytest.MonkeyPatch, launcher: str | None, asked: Any, native: bool, expected: str
) -> None:
    monkeypatch.setattr(precision, "native_bf16", lambda device: native)
    if launcher is None:
        monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    else:
        monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", launcher)
    accelerator = make_accelerator(DeviceSettings(precision=asked, device="cpu"))
    assert became(accelerator) == expected
    assert machine_facts(accelerator)["precision"] == expected
    assert os.environ.get("ACCELERATE_MIXED_PRECISION") == launcher


def test_second_run_in_a_process_may_compute_in_other_numbers() -> None:
    assert became(make_accelerator(DeviceSettings(precision="bf16", device="cpu"))) == "bf16"
    assert became(make_accelerator(DeviceSettings(precision="fp32", device="cpu"))) == "fp32"


def test_bf16_multiplies_in_bf16_over_fp32_weights_and_losses() -> None:
    accelerator = make_accelerator(DeviceSettings(precision="bf16", device="cpu", threads=1))
    model = prepare(Toy(), accelerator)
    seen = []
    model.words.register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))  # type: ignore[operator, union-attr]
    parts = model(batch_of([1, 2]))
    assert seen == [torch.bfloat16]
    assert parts["mlm"].total.dtype == torch.float32
    assert {each.dtype for each in model.parameters()} == {torch.float32}


def test_launchers_accumulation_and_compilation_are_not_applied_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    norms = []
    for steps in (None, "4"):
        if steps:
            monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", steps)
            monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "INDUCTOR")
        with collecting() as heard:
            run = ToyRun.start(tmp_path, source=ToySource(), steps=1)
        norms.append(next(run.steps()).grad_norm)
        assert type(run.model) is Toy
    assert norms[0] == norms[1]
    assert any("torch.compile" in notice.message for notice in heard)


def test_threads() -> None:
    """torchrun's own OMP_NUM_THREADS=1 was nobody's wish; every other value was."""
    assert threads_to_use(8, {}) == 8
    assert threads_to_use(8, {"LOCAL_WORLD_SIZE": "2"}) == 4
    assert threads_to_use(8, {"LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}) == 4
    assert threads_to_use(8, {"LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "3"}) == 3
    assert threads_to_use(8, {"OMP_NUM_THREADS": "1"}) == 1
    assert threads_to_use(2, {"LOCAL_WORLD_SIZE": "3"}) == 1
    assert threads_to_use(8, {"OMP_NUM_THREADS": "many"}) == 8


def test_cores_heed_affinity_and_a_containers_quota(tmp_path: Path) -> None:
    everything = allowed_cores(tmp_path)
    assert 1 <= everything <= len(os.sched_getaffinity(0))
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert allowed_cores(tmp_path) == min(2, everything)
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert allowed_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert allowed_cores(tmp_path) == everything
    one = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    code = one + "from bertkit.training.threads import allowed_cores; print(allowed_cores())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_differences_of_machines_in_words() -> None:
    before = machine_facts(make_accelerator(DeviceSettings(precision="fp32", device="cpu", threads=1)))
    assert machine_differences(before, before) == []
    assert before["threads"] == 1
    assert before["torch"] == torch.__version__
    now = before | {"threads": 4, "torch": "9.9"}
    assert machine_differences(before, now) == [f"torch was {torch.__version__}, is 9.9", "threads was 1, is 4"]


def test_scaler_state_is_plain_and_comes_back() -> None:
    accelerator = make_accelerator(DeviceSettings(precision="fp32", device="cpu"))
    assert scaler_state(accelerator) is None
    restore_scaler(accelerator, None)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    state = json.loads(json.dumps(scaler_state(accelerator)))
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    restore_scaler(accelerator, state)
    assert accelerator.scaler.get_scale() == 1024.0


def test_unknown_and_missing_trackers() -> None:
    with pytest.raises(SettingsError, match="tensorboard"):
        make_accelerator(DeviceSettings(device="cpu"), report_to=["tensorbord"])
    with pytest.raises(MissingError) as caught:
        make_accelerator(DeviceSettings(device="cpu"), report_to=["comet_ml"])
    assert caught.value.exit_code == 4


def test_failing_tracker_costs_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.tracking import GeneralTracker

    class Recording(GeneralTracker):  # type: ignore[misc]
        name, requires_logging_directory, tracker = "recording", False, None

        def __init__(self) -> None:
            super().__init__()
            self.sent: list[Any] = []

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            self.sent.append(values)

        def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
            self.sent.append((step, values))

    class Failing(Recording):
        name = "failing"

        def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
            if step == 3:
                raise ConnectionError("the network is gone")
            super().log(values, step)

    class Refusing(Recording):
        def store_init_configuration(self, values: dict[str, Any]) -> None:
            raise TimeoutError("no answer")

    accelerator = make_accelerator(DeviceSettings(device="cpu"))
    refusing, failing, good = Refusing(), Failing(), Recording()
    accelerator.log_with = [refusing, failing, good]
    with collecting() as heard:
        trackers = Trackers(accelerator, "toy", {"lr": 1.0})
        for step in range(1, 6):
            trackers.log({"loss": 1.0 / step, "accuracy": None}, step)
        trackers.close()
    assert failing.sent == [{"lr": 1.0}, (1, {"loss": 1.0}), (2, {"loss": 0.5})]
    assert [step for step, _ in good.sent[1:]] == [1, 2, 3, 4, 5]
    assert [notice.message.partition(": ")[2] for notice in heard] == [
        "TimeoutError: no answer",
        "ConnectionError: the network is gone",
    ]


def test_cpu_is_taken_where_a_launcher_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert module._has_accelerator()
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert not module._has_accelerator()


@pytest.mark.slow
def test_killed_process_ends_the_others_with_a_word(tmp_path: Path) -> None:
    """Started by hand: torchrun would end the other process itself."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = Path(__file__).with_name("toy_training.py")
    started = []
    for rank in ("0", "1"):
        joined = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONPATH": str(script.parents[2])}
        command = [sys.executable, str(script), str(tmp_path), "lost"]
        started.append(subprocess.Popen(command, env=os.environ | joined | where, stderr=subprocess.DEVNULL))
    try:
        codes = [process.wait(timeout=90) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes[1] == -signal.SIGKILL
    step, exit_code, message = json.loads((tmp_path / "found.json").read_text())
    assert (step, exit_code) == (3, 5)
    assert "Another process" in message


def test_tensorboard_writes_into_the_folder_that_was_claimed_later(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    accelerator = make_accelerator(DeviceSettings(device="cpu"), report_to=["tensorboard"])
    accelerator.project_configuration.set_directories(str(tmp_path))
    trackers = Trackers(accelerator, "toy", {"lr": 1.0})
    trackers.log({"loss": 1.0}, 1)
    trackers.close()
    assert list(tmp_path.rglob("events.out.tfevents*"))


def test_freed_memory_stays_and_can_go_back_again() -> None:
    """In a process of its own: blocks of 48 MB that are taken, freed and taken again bring in no page anew, or each of theirs."""
    code = """
import ctypes, resource
from bertkit.training.allocator import free_as_usual, keep_freed_memory

library, size = ctypes.CDLL(None), 48 << 20
library.malloc.restype, library.malloc.argtypes, library.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        blocks = [library.malloc(size) for _ in range(3)]
        for block in blocks:
            ctypes.memset(block, 1, size)
        for block in blocks:
            library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_freed_memory()
faults()
kept = faults()
assert free_as_usual()
print(kept, faults())
"""
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split("."))) < (2, 35):
        pytest.skip("glibc keeps blocks of this size from 2.35 on")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kept, usual = map(int, done.stdout.split())
    assert kept < 1_000 < 100_000 < usual
