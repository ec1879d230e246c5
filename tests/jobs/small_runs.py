"""Small pretrainings through the command line: texts, flags, calls in this process and in others.

As a program it is one of several processes that run a list of commands: ``small_runs.py commands.json``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

ROOT = Path(__file__).parents[2]
# What makes a run small, and the same to the bit in every process: two layers, short sequences, one thread.
SMALL = (
    "--size tiny --vocab-size 300 --max-length 32 --batch-size 8 --log-every 1 --precision fp32 "
    "--set device.threads=1 --set inputs.validation_sequences=16 --workers 0 --set optimizer.name=adamw"
)


def documents(count: int, lines: int = 12) -> list[list[str]]:
    """Real English: the first lines of Python's own help, a topic a document."""
    found = []
    for name in sorted(topics):
        text = [line.strip() for line in topics[name].splitlines() if len(line.split()) > 2]
        found.append(text[:lines])
    return [text for text in found if len(text) > 3][:count]


def write(path: Path, texts: Sequence[Sequence[str]]) -> Path:
    """One document after another, a blank line between."""
    path.write_text("\n\n".join("\n".join(lines) for lines in texts) + "\n", encoding="utf-8")
    return path


def flags(corpus: Path | str, output: Path | str, *more: str) -> list[str]:
    """The arguments of a small pretraining; flags in ``more`` may stand in one text, and the last one of a name counts."""
    valid = Path(corpus).with_name("valid.txt")
    given = ["--valid", str(valid)] if valid.exists() else []
    return ["pretrain", "--corpus", str(corpus), *given, *SMALL.split(), "-o", str(output), *split(*more)]


def split(*texts: str) -> list[str]:
    """Flags that stand in one text, apart."""
    return [word for text in texts for word in (text.split() if text.startswith("-") else [text])]


@dataclass(frozen=True)
class Call:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


def call(*argv: str) -> Call:
    """Runs a command in this process."""
    from bertkit.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(argv)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Call(code, out.getvalue(), err.getvalue())


def done(*argv: str) -> Call:
    """Runs a command that must come to its end."""
    found = call(*argv)
    assert found.code == 0, found.err
    return found


def environment(**more: str) -> dict[str, str]:
    """Of another process: one thread, this tree's bertkit."""
    plain = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    fixed = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return {name: value for name, value in (plain | fixed | more).items() if value}  # an empty one is unset


def start(argv: Sequence[str], folder: Path, launcher: Sequence[str] = ("-m", "bertkit"), **more: str) -> subprocess.Popen[bytes]:
    """Starts ``python LAUNCHER ARGV`` with its streams in ``folder/out`` and ``folder/err``."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen([sys.executable, *launcher, *argv], stdout=out, stderr=err, env=environment(**more))


def end(process: subprocess.Popen[bytes], folder: Path, timeout: float = 240) -> Call:
    """Waits for it."""
    try:
        code = process.wait(timeout)
    finally:
        process.kill()
    out, err = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
    return Call(code, out, err)


def torchrun(processes: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]


def run_commands(folder: Path, commands: Sequence[tuple[list[str], int, dict[str, str]]], processes: int) -> None:
    """Has several processes run commands one after another: the flags, the step behind which they are gone, and variables."""
    (folder / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    found = end(start([str(folder / "commands.json")], folder, launcher=[*torchrun(processes), __file__]), folder)
    assert found.code == 0, found.err


def told(folder: Path, number: int, rank: int) -> dict[str, Any]:
    """Code, stdout and stderr of a command of :func:`run_commands` in one of the processes."""
    return json.loads((folder / f"told-{number}-{rank}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def log(folder: Path) -> list[dict[str, Any]]:
    """The lines of log.jsonl."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def steps(folder: Path, key: str = "loss") -> dict[int, Any]:
    """One value of each training step that was logged; a step twice would be a fault."""
    found: dict[int, Any] = {}
    for line in log(folder):
        if key in line:
            assert line["step"] not in found
            found[line["step"]] = line[key]
    return found


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of a model folder."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def same_bits(one: Path, other: Path) -> bool:
    """Are all weights of two model folders equal to the bit?"""
    mine, theirs = weights(one), weights(other)
    return mine.keys() == theirs.keys() and all(mine[name].equal(theirs[name]) for name in mine)


def checkpoints(folder: Path) -> list[int]:
    """Steps of the checkpoints, rising."""
    return sorted(int(path.name.partition("-")[2]) for path in (folder / "checkpoints").glob("checkpoint-*"))


@contextlib.contextmanager
def at_step(step: int, what: Any) -> Iterator[None]:
    """Does ``what(course)`` when optimizer step ``step`` is done, validated and saved."""
    from bertkit.jobs.training import Course

    before = Course._after

    def after(self: Course, report: Any) -> None:
        before(self, report)
        if report.step == step:
            what(self)

    Course._after = after  # type: ignore[method-assign]
    try:
        yield
    finally:
        Course._after = before  # type: ignore[method-assign]


class Gone(BaseException):
    """The end of a process as far as a run is concerned: nothing is told, nothing is written."""


def gone(course: Any) -> None:
    raise Gone


def killed(course: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Runs commands one after another, each of this process alone or of several; their words go to files."""
    for number, (argv, breaks, variables) in enumerate(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))):
        os.environ.update(variables)
        told = Call(-1, "", "")
        with contextlib.suppress(Gone), at_step(breaks, killed if variables.get("KILL") else gone):
            told = call(*argv)
        rank = os.environ.get("RANK", "0")
        facts = {"code": told.code, "out": told.out, "err": told.err}
        Path(sys.argv[1]).with_name(f"told-{number}-{rank}.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
