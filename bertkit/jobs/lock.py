"""One run at a time in a folder: a lock file that names its holder, and knows when the holder is gone.

A holder on this machine is looked up by process id and start time. One that cannot be looked up (another machine, or the
container before a restart) is gone when it has not touched its lock for five minutes, by the file system's own clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from bertkit.errors import ResourceError

NAME = "bertkit.lock"
TOUCH_EVERY = 30.0  # seconds
GONE_AFTER = 300.0


def _machine() -> str:
    """What tells two sets of process ids apart: host, boot and process namespace."""
    facts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        facts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(facts)


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None where it is gone or this system does not say."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else after_name[19]  # a zombie holds nothing


def _alive(pid: int, started: str | None) -> bool:
    if Path("/proc/self/stat").exists():
        now = _started(pid)
        return now is not None and (started is None or now == started)
    if os.name == "nt":  # os.kill(pid, 0) would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Lock:
    """Holds a folder for this process until :meth:`release`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.token = uuid.uuid4().hex
        self._done = threading.Event()

    def acquire(self) -> None:
        """Takes the lock, a stale one's place too.

        Raises:
            ResourceError: Another run holds it (exit 5); its host and process are named.
        """
        for _ in range(5):
            if self._create():
                threading.Thread(target=self._touch, name="bertkit-lock", daemon=True).start()
                return
            holder = self._holder()
            if holder is not None and self._held(holder):
                raise ResourceError(
                    f"Another run is using this folder: process {holder.get('pid', '?')} on {holder.get('host', '?')}"
                    f", since {holder.get('since', '?')}.",
                    where=str(self.path.parent),
                    hint=f"Wait for it, choose another --output, or, if that process is gone, delete {self.path}.",
                )
            self._remove_stale(holder)
        raise ResourceError("The lock of this folder keeps changing hands.", where=str(self.path), hint="Try again.")

    def release(self) -> None:
        """Gives the folder free; a lock that is another's by now is left alone."""
        self._done.set()
        holder = self._holder()
        if holder is not None and holder.get("token") == self.token:
            self.path.unlink(missing_ok=True)

    def _facts(self) -> dict[str, Any]:
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "machine": _machine(),
            "started": _started(os.getpid()),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "token": self.token,
        }

    def _create(self) -> bool:
        """Writes the lock whole under another name and links it: whoever sees it sees all of it."""
        draft = self.path.with_name(f".{NAME}-{self.token}")
        try:
            draft.write_text(json.dumps(self._facts()), encoding="utf-8")  # the disk may be full
            try:
                os.link(draft, self.path)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                return self._create_plainly()
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _create_plainly(self) -> bool:
        try:
            with self.path.open("x", encoding="utf-8") as file:
                file.write(json.dumps(self._facts()))
        except FileExistsError:
            return False
        return True

    def _holder(self) -> dict[str, Any] | None:
        try:
            holder = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return {}
        return holder if isinstance(holder, dict) else {}

    def _held(self, holder: dict[str, Any]) -> bool:
        pid = holder.get("pid")
        if holder.get("machine") == _machine() and isinstance(pid, int):
            return _alive(pid, holder.get("started"))
        return self._age() < GONE_AFTER

    def _age(self) -> float:
        """Seconds since the lock was touched, by the clock of the file system that has it."""
        probe = self.path.with_name(f".{NAME}-{self.token}")
        try:
            probe.touch()
            return probe.stat().st_mtime - self.path.stat().st_mtime
        except OSError:
            return 0.0
        finally:
            probe.unlink(missing_ok=True)

    def _remove_stale(self, holder: dict[str, Any] | None) -> None:
        """Moves a stale lock away, then looks: of two that found it stale, the later must not remove the earlier's new one."""
        if holder is None:
            return
        away = self.path.with_name(f".{NAME}-stale-{self.token}")
        try:
            self.path.rename(away)
        except OSError:
            return
        try:
            moved = json.loads(away.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            moved = {}
        if moved != holder:
            with contextlib.suppress(OSError):
                os.link(away, self.path)
        away.unlink(missing_ok=True)

    def _touch(self) -> None:
        while not self._done.wait(TOUCH_EVERY):
            with contextlib.suppress(OSError):
                os.utime(self.path)
