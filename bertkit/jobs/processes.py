"""``--processes N``: starts the processes of a run on this machine, passes signals on to them, and answers for their end.

The processes are this same command, told by torch's environment variables who they are; the first one speaks and writes,
so this process says nothing but what befell them. They stand in process groups of their own: Ctrl-C reaches them once,
through here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from bertkit.errors import ResourceError, UsageError
from bertkit.jobs.signals import Stop, StopNow

PARENT = "BERTKIT_STARTED_BY"  # the process that started this one: who ends when it is gone
GRACE = 60.0  # seconds for the others to notice by themselves that one has failed
LAST = 5.0  # seconds between a second signal and the end


def wanted(processes: str | None, environment: Mapping[str, str] = os.environ) -> int:
    """How many processes are to be started here; 1: none but this one.

    Raises:
        UsageError: Neither a number nor ``auto`` (exit 2).
        ResourceError: A launcher has started another number than is asked for, or they are far more than the cores (exit 5).
    """
    if processes is None:
        return 1
    if processes != "auto" and not (processes.isascii() and processes.isdigit() and int(processes) >= 1):
        raise UsageError(f"--processes is a number, or auto, not {processes!r}.")
    started = environment.get("WORLD_SIZE")
    if started:
        if processes not in ("auto", started):
            raise ResourceError(f"{processes} processes are asked for, and the launcher started {started}.", where="--processes")
        return 1
    if processes == "auto":
        return _gpus()
    count, most = int(processes), max(16, 4 * (os.cpu_count() or 1))
    if count > most:
        raise ResourceError(
            f"{count} processes are asked for, and this machine has {os.cpu_count()} processor cores.",
            where="--processes",
            hint=f"At most {most} are started here; --processes auto starts one for each GPU.",
        )
    return count


def _gpus() -> int:
    import torch

    return max(1, torch.cuda.device_count())


def start(argv: Sequence[str], count: int, stop: Stop, say: Callable[[str], None]) -> int:
    """Runs ``bertkit ARGV`` in ``count`` processes and returns the exit code of the first one that failed, else 0.

    Args:
        argv: Of this command.
        count: Processes.
        stop: Signals, to be passed on.
        say: Told which process was killed.

    Raises:
        ResourceError: A process could not start, or the first one was killed before it could tell anything (exit 5).
        StopNow: A second signal.
    """
    running: list[subprocess.Popen[bytes]] = []
    with stop.deferred():
        try:
            port = _free_port()
            for rank in range(count):
                running.append(_start(argv, rank, count, port))
            _wait(running, stop)
            return _answer([each.returncode for each in running], say)
        except OSError as error:
            raise ResourceError(
                f"Process {len(running)} of {count} could not be started: {error}.", where="--processes"
            ) from None
        except StopNow:
            _send(running, stop.number)
            _leave(running, LAST)
            raise
        finally:
            _leave(running, 0.0)


def _start(argv: Sequence[str], rank: int, count: int, port: int) -> subprocess.Popen[bytes]:
    who = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_PORT": port}
    environment = os.environ | {name: str(value) for name, value in who.items()}
    environment |= {"MASTER_ADDR": "127.0.0.1", PARENT: str(os.getpid())}
    group = {} if os.name == "nt" else {"process_group": 0}
    return subprocess.Popen([sys.executable, "-m", "bertkit", *argv], env=environment, **group)  # type: ignore[call-overload,no-any-return]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(running: Sequence[subprocess.Popen[bytes]], stop: Stop) -> None:
    """Waits for all, passes the first signal on, and gives the others a minute once one has failed."""
    told, failed = 0, 0.0
    while any(each.poll() is None for each in running):
        if stop.number and not told:
            told = stop.number
            _send(running, told)
        codes = [each.returncode for each in running]
        if any(codes) and not failed:
            failed = time.monotonic()
        if failed and time.monotonic() - failed > GRACE:
            _leave(running, LAST)
        time.sleep(0.05)


def _answer(codes: Sequence[int], say: Callable[[str], None]) -> int:
    """The exit code of the whole, of the codes of its processes; who was killed is named."""
    hint = "SIGKILL is often the machine running out of memory. The same command goes on from the newest checkpoint."
    for rank, code in enumerate(codes):
        if code < 0:
            words = f"Process {rank} was ended by {signal.Signals(-code).name}."
            if rank == 0:
                raise ResourceError(words, hint=hint)
            say(f"{words} {hint}")
    code = next((code for code in codes if code), 0)
    return code if code >= 0 else ResourceError.exit_code


def _send(running: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            each.send_signal(number)


def _leave(running: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Gives those that still run so many seconds, then ends them."""
    until = time.monotonic() + seconds
    while seconds and time.monotonic() < until and any(each.poll() is None for each in running):
        time.sleep(0.05)
    for each in running:
        if each.poll() is None:
            each.kill()
            each.wait()


def end_with_parent(environment: Mapping[str, str] = os.environ) -> None:
    """In a process that :func:`start` started: asks the system for SIGTERM when the one that started it is gone (Linux)."""
    parent = environment.get(PARENT, "")
    if not sys.platform.startswith("linux") or not parent.isdigit():
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != int(parent):  # it went before we could ask
        os.kill(os.getpid(), signal.SIGTERM)
