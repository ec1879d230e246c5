"""Checkpoints: whole or not there, and which of them stay."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import ToyRun, ToySource

from bertkit.errors import CheckpointError, FolderError, ResourceError
from bertkit.notices import collecting
from bertkit.training import checkpoint as module
from bertkit.training.checkpoint import Checkpoints, newest_verified, open_checkpoint, resume_point, space_needed, verify
from bertkit.training.files import check_space, readable
from bertkit.training.optimizer_state import read_moments, write_moments

FILES = {"model.safetensors", "training_state.safetensors", "state.json", "manifest.json"}


def saved(run: ToyRun, *steps: int) -> None:
    for report in run.steps():
        if report.step in steps:
            run.save()


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder with checkpoint-10 and checkpoint-20."""
    saved(ToyRun.start(tmp_path, source=ToySource(), steps=20), 10, 20)
    return tmp_path / "checkpoints"


def names(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("checkpoint-")) for path in folder.glob("checkpoint-*"))


def test_files_of_a_checkpoint(two: Path) -> None:
    assert {path.name for path in (two / "checkpoint-20").iterdir()} == FILES
    assert not list(two.glob(".*"))
    manifest = json.loads((two / "checkpoint-20" / "manifest.json").read_text())
    assert set(manifest["files"]) == FILES - {"manifest.json"}
    for name, fact in manifest["files"].items():
        # sha256sum and stat are the reference
        path = two / "checkpoint-20" / name
        assert fact["sha256"] == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
        assert fact["size"] == len(path.read_bytes())


def empty(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"")


def cut(path: Path) -> None:
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def without_state(path: Path) -> None:
    (path / "training_state.safetensors").unlink()


def flipped(path: Path) -> None:
    content = bytearray((path / "training_state.safetensors").read_bytes())
    content[-5] ^= 1
    (path / "training_state.safetensors").write_bytes(content)


def without_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def half_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("damage", "file", "reason"),
    [
        (empty, "model.safetensors", "is empty of"),
        (cut, "model.safetensors", "has 766 of 1,532 bytes"),
        (without_state, "training_state.safetensors", "is missing"),
        (flipped, "training_state.safetensors", "changed"),
        (without_manifest, "manifest.json", "is missing"),
        (half_manifest, "manifest.json", "cannot be read"),
    ],
)
def test_damaged_newest_is_passed_over_with_its_reason(two: Path, damage: Any, file: str, reason: str) -> None:
    damage(two / "checkpoint-20")
    with collecting() as heard:
        found = resume_point(two)
    assert found is not None
    assert found.step == 10
    assert len(heard) == 1
    assert "checkpoint-20" in heard[0].message
    assert file in heard[0].message
    assert reason in heard[0].message
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(two / "checkpoint-20")
    assert caught.value.exit_code == 3
    assert file in str(caught.value)
    damage(two / "checkpoint-10")
    with pytest.raises(CheckpointError, match=file) as caught:
        resume_point(two)
    assert "--overwrite" in str(caught.value.hint) or "--init-from" in str(caught.value.hint)


def test_run_goes_on_over_a_damaged_checkpoint(two: Path) -> None:
    empty(two / "checkpoint-20")
    run = ToyRun.start(two.parent, source=ToySource(), steps=20)
    assert run.loop.state.step == 10
    with collecting() as heard:
        saved(run, 20)
    assert verify(two / "checkpoint-20")["step"] == 20
    assert (two / "checkpoint-20.damaged-1" / "model.safetensors").exists()
    assert "checkpoint-20.damaged-1" in heard[0].message


def test_nothing_saved_yet(tmp_path: Path) -> None:
    assert resume_point(tmp_path / "none") is None
    assert newest_verified(tmp_path) == (None, [])


def rotate(folder: Path, run: ToyRun, *, save_every: int, eval_every: int, metric: dict[int, float]) -> Iterator[set[int]]:
    """What a job does with --keep-best: an evaluation that is the best so far saves in any case."""
    best = -1.0
    for report in run.steps():
        improved = report.step % eval_every == 0 and metric.get(report.step, 0.0) > best
        if improved:
            best = metric.get(report.step, 0.0)
        if improved or report.step % save_every == 0:
            run.save(best=improved)
        yield set(names(folder))


@pytest.mark.parametrize(
    ("options", "peak", "left"),
    [
        ({"keep": 1, "steps": 20, "save_every": 5, "eval_every": 5}, 5, [5, 20]),
        ({"keep": 1, "steps": 20, "save_every": 5, "eval_every": 5}, 20, [20]),
        ({"keep": 2, "steps": 24, "save_every": 3, "eval_every": 2}, 6, [6, 21, 24]),
        ({"keep": 2, "steps": 24, "save_every": 3, "eval_every": 2}, 4, [4, 21, 24]),
    ],
)
def test_newest_and_best_stay(tmp_path: Path, options: dict[str, int], peak: int, left: list[int]) -> None:
    run = ToyRun.start(tmp_path, source=ToySource(), steps=options["steps"], keep=options["keep"])
    folder = tmp_path / "checkpoints"
    seen = list(rotate(folder, run, save_every=options["save_every"], eval_every=options["eval_every"], metric={peak: 1.0}))
    assert names(folder) == left
    first = next(index for index, found in enumerate(seen) if found)
    assert all(seen[first:])  # at no moment none
    assert all(len(found) <= options["keep"] + 1 for found in seen)
    assert run.checkpoints.best == peak


def test_oldest_is_the_lowest_number_whatever_the_dates(two: Path) -> None:
    os.utime(two / "checkpoint-20", (0, 0))
    kept = Checkpoints(two, run="toy", keep=1)
    assert kept.prune() == [two / "checkpoint-10"]
    assert names(two) == [20]


def test_newest_whole_one_is_never_removed(two: Path) -> None:
    flipped(two / "checkpoint-20")  # its sizes are right: only its contents tell
    assert Checkpoints(two, run="toy", keep=1).prune() == []
    assert names(two) == [10, 20]


def test_other_peoples_folders_are_never_removed(two: Path) -> None:
    shutil.copytree(two / "checkpoint-10", two / "checkpoint-5")
    manifest = json.loads((two / "checkpoint-5" / "manifest.json").read_text())
    (two / "checkpoint-5" / "manifest.json").write_text(json.dumps(manifest | {"run": "another"}))
    (two / "checkpoint-7").mkdir()
    (two / "checkpoint-7" / "thesis.txt").write_text("mine")
    (two / "checkpoint-old").mkdir()
    Checkpoints(two, run="toy", keep=1).prune()
    assert {path.name for path in two.iterdir()} == {"checkpoint-5", "checkpoint-7", "checkpoint-old", "checkpoint-20"}


def test_another_runs_checkpoint_is_not_replaced(two: Path) -> None:
    run = ToyRun.start(two.parent / "mine", source=ToySource(), steps=10)
    run.checkpoints = Checkpoints(two, run="mine")
    before = (two / "checkpoint-10" / "manifest.json").read_bytes()
    with pytest.raises(FolderError, match="another run"):
        saved(run, 10)
    assert (two / "checkpoint-10" / "manifest.json").read_bytes() == before
    assert not list(two.glob(".*"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_failing_disk_leaves_the_old_checkpoint(two: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    run = ToyRun.start(two.parent, source=ToySource(), steps=22)

    def fail(path: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.files, "sync_all", fail)
    with pytest.raises(ResourceError) as caught:
        saved(run, 22)
    assert caught.value.exit_code == 5
    assert readable(space_needed(run.model)) in caught.value.message
    assert os.strerror(number) in caught.value.message
    assert names(two) == [10, 20]
    assert not list(two.glob(".*"))
    assert resume_point(two).step == 20  # type: ignore[union-attr]


def test_safetensors_own_write_errors_are_the_disks(two: Path) -> None:
    """The file size limit makes the library, not Python, fail in the middle of a file."""
    run = ToyRun.start(two.parent, source=ToySource(), steps=22)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(ResourceError, match="needed"):
            saved(run, 22)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert names(two) == [10, 20]


def test_disk_is_checked_before_work(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    check_space(tmp_path / "not" / "yet", 1000)
    with pytest.raises(ResourceError) as caught:
        check_space(tmp_path / "not" / "yet", free * 2)
    assert readable(free * 2) in caught.value.message
    assert not (tmp_path / "not").exists()


def test_space_needed_is_enough_and_not_far_off(tmp_path: Path) -> None:
    model = torch.nn.Linear(1000, 3000)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(torch.ones(1, 1000)).sum().backward()
    optimizer.step()
    write_moments(tmp_path / "moments", model, optimizer)
    real = (tmp_path / "moments").stat().st_size + 4 * 3_003_000
    assert real <= space_needed(model) <= 1.2 * real


class Fused(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(4, 12)
        self.words = torch.nn.Embedding(8, 4)  # six of them real


def test_moments_have_the_files_names_and_shapes(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    def to_file(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        made = {}
        for name, each in tensors.items():
            if name.startswith("qkv"):
                made |= {f"{part}.{name[4:]}": piece for part, piece in zip("qkv", each.chunk(3), strict=True)}
            else:
                made["embedding"] = each[:6]
        return made

    def from_file(tensors: dict[str, torch.Tensor], wanted: list[str]) -> dict[str, torch.Tensor]:
        made = {}
        for name in wanted:
            if name.startswith("qkv"):
                made[name] = torch.cat([tensors[f"{part}.{name[4:]}"] for part in "qkv"])
            else:
                made[name] = torch.cat([tensors["embedding"], torch.zeros(2, 4)])
        return made

    model = Fused()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    (model.qkv(model.words(torch.tensor([1, 5]))).square().sum()).backward()
    optimizer.step()
    steps = write_moments(tmp_path / "moments", model, optimizer, to_file)
    shapes = {name: tuple(each.shape) for name, each in load_file(tmp_path / "moments").items()}
    assert shapes["exp_avg.q.weight"] == shapes["exp_avg_sq.v.weight"] == (4, 4)
    assert shapes["exp_avg.embedding"] == (6, 4)
    other = Fused()
    other.load_state_dict(model.state_dict())
    again = torch.optim.AdamW(other.parameters(), lr=0.1, fused=True)
    read_moments(tmp_path / "moments", other, again, steps, from_file)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        two.grad = one.grad
    optimizer.step()
    again.step()
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


def test_moments_of_another_model_are_refused(two: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match="does not fit"):
        open_checkpoint(two / "checkpoint-20").restore(model, torch.optim.AdamW(model.parameters()))


def test_state_of_a_later_version_with_more_fields_is_read(two: Path) -> None:
    path = two / "checkpoint-20"
    run = ToyRun.start(two.parent, source=ToySource(), steps=20)
    found = open_checkpoint(path)
    found.state["train"]["something_new"] = 3
    assert found.restore(run.model, run.optimizer).step == 20


def test_kill_between_the_two_renames_of_a_replacement(two: Path) -> None:
    (two / "checkpoint-20").rename(two / ".checkpoint-20.replaced")
    assert resume_point(two).step == 20  # type: ignore[union-attr]
    assert names(two) == [10, 20]


SAVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import torch
from toy_training import ToyRun, ToySource
run = ToyRun.start(Path(sys.argv[1]), source=ToySource(), steps=10**6, keep=1)
print("ready", flush=True)
for index, _ in enumerate(run.steps()):
    run.save()
    if index % 50 == 0:
        print("saved", flush=True)
"""


@pytest.mark.slow
def test_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """One process is started; forks of it save in a loop and are killed at random moments, twenty times."""
    forker = SAVER.replace('print("ready", flush=True)\n', FORK)
    process = subprocess.Popen(
        [sys.executable, "-c", forker, str(tmp_path), str(Path(__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    draw = random.Random(4)
    folder = tmp_path / "checkpoints"
    last, partial = 0, 0
    for _ in range(20):
        process.stdin.write("go\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        assert process.stdout.readline() == "saved\n"
        time.sleep(draw.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        assert process.stdout.readline() == "gone\n"
        partial += bool(list(folder.glob(".*")))
        for path in folder.glob("checkpoint-*"):
            verify(path)  # a final name appears only when complete
        found = resume_point(folder)
        assert found is not None
        assert found.step > last
        last = found.step
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    assert partial  # or no kill fell into a saving, and nothing was tried
    process.stdout.close()


FORK = """
import os
while sys.stdin.readline():
    child = os.fork()
    if not child:
        run = ToyRun.start(Path(sys.argv[1]), source=ToySource(), steps=10**6, keep=1)
        break
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
else:
    sys.exit(0)
"""
