"""Run folders: whose they are, what they remember, what --overwrite removes, and who holds them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from bertkit.errors import DataError, FolderError, MissingError, ResourceError
from bertkit.fields import Settings
from bertkit.jobs import lock as locks
from bertkit.jobs.folder import RunFolder, claim, newest_run, read_state, safe_join, write_text
from bertkit.jobs.lock import Lock
from bertkit.notices import collecting


class Inner(Settings):
    rate: float = 0.1
    log_every: int = 5


class Toy(Settings):
    seed: int = 1
    run: Inner = Field(default_factory=Inner)
    output: str | None = None


def take(path: Path, settings: Toy | None = None, *, named: bool = True, command: str = "pretrain", **more: Any) -> RunFolder:
    return claim(path, settings or Toy(), command=command, named=named, line="bertkit pretrain", **more)


def finished(path: Path, settings: Toy | None = None, **more: Any) -> None:
    with take(path, settings, **more) as folder:
        folder.resolve(settings or Toy())
        folder.write("model.safetensors", "weights")
        folder.log({"step": 1, "loss": 2.0})
        folder.finish("finished")


def test_a_new_folder_is_made_locked_and_described(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "a"
    with take(path, facts={"task": "sst2"}) as folder:
        assert folder.situation == "new"
        assert (path / "bertkit.lock").exists()
        state = json.loads((path / "bertkit.json").read_text(encoding="utf-8"))
        assert (state["state"], state["command_name"], state["task"]) == ("running", "pretrain", "sst2")
    assert not (path / "bertkit.lock").exists()


def test_the_same_command_goes_on_until_it_is_finished(tmp_path: Path) -> None:
    with take(tmp_path / "a") as folder:
        folder.finish("stopped")
    with take(tmp_path / "a") as folder:
        assert folder.situation == "unfinished"
        assert folder.state["state"] == "running"
    finished(tmp_path / "a")
    before = (tmp_path / "a" / "bertkit.json").read_bytes()
    with take(tmp_path / "a") as folder:
        assert folder.situation == "finished"
    assert (tmp_path / "a" / "bertkit.json").read_bytes() == before


def test_other_settings_in_a_named_folder_are_refused_each_by_name(tmp_path: Path) -> None:
    finished(tmp_path / "a")
    other = Toy(seed=2, run=Inner(rate=0.5, log_every=50))
    with pytest.raises(FolderError) as caught:
        take(tmp_path / "a", other)
    assert caught.value.exit_code == 2
    assert "seed: 1 before, 2 now" in caught.value.message
    assert "run.rate: 0.1 before, 0.5 now" in caught.value.message
    assert "log_every" not in caught.value.message
    assert (tmp_path / "a" / "model.safetensors").exists()
    with pytest.raises(FolderError, match="command: "):
        take(tmp_path / "a", command="finetune")


def test_an_unnamed_output_moves_on_and_says_so_once(tmp_path: Path) -> None:
    finished(tmp_path / "a", named=False)
    other = Toy(seed=2)
    with collecting() as heard, take(tmp_path / "a", other, named=False) as folder:
        assert folder.path == tmp_path / "a-2"
        assert folder.situation == "new"
    assert [notice.kind for notice in heard] == ["output"]
    with collecting() as heard, take(tmp_path / "a", other, named=False) as folder:  # the same again goes on there
        assert (folder.path, folder.situation) == (tmp_path / "a-2", "unfinished")
    assert heard == []
    with take(tmp_path / "a", Toy(seed=3), named=False) as folder:
        assert folder.path == tmp_path / "a-3"


def test_an_unnamed_output_passes_by_someones_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("mine", encoding="utf-8")
    with take(tmp_path / "a", named=False) as folder:
        assert folder.path == tmp_path / "a-2"


@pytest.mark.parametrize("overwrite", [False, True])
def test_someones_files_are_never_touched(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderError, match=r"thesis\.txt") as caught:
        take(tmp_path / "a", overwrite=overwrite)
    assert caught.value.exit_code == 2
    assert [child.name for child in (tmp_path / "a").iterdir()] == ["thesis.txt"]
    (tmp_path / "b").write_text("a file", encoding="utf-8")
    with pytest.raises(FolderError, match="a file, not a folder"):
        take(tmp_path / "b", overwrite=overwrite)
    with pytest.raises(FolderError, match="a file, not a folder"):
        take(tmp_path / "b" / "c", overwrite=overwrite)


def test_an_empty_folder_or_what_a_killed_start_left_may_be_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".bertkit.lock-123").write_text("", encoding="utf-8")
    (tmp_path / "a" / ".bertkit.json.77.tmp").write_text("{", encoding="utf-8")
    with take(tmp_path / "a") as folder:
        assert folder.situation == "new"


def test_overwrite_removes_what_the_run_made_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("mine", encoding="utf-8")
    with take(path) as folder:
        folder.write("model.safetensors", "w")
        folder.write("evals/x/metrics.json", "{}")
        folder.made("checkpoints", "linked")
        (path / "checkpoints" / "checkpoint-10").mkdir(parents=True)
        (path / "checkpoints" / "checkpoint-10" / "model.safetensors").write_text("w", encoding="utf-8")
        (path / "checkpoints" / "notes.txt").write_text("mine", encoding="utf-8")
        (path / "linked").symlink_to(precious, target_is_directory=True)
        folder.finish("finished")
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    with take(path, Toy(seed=9), overwrite=True) as folder:
        assert folder.situation == "new"
    left = sorted(child.relative_to(path).as_posix() for child in path.rglob("*"))
    assert left == ["bertkit.json", "checkpoints", "checkpoints/notes.txt", "notes.txt"]
    assert (precious / "thesis.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "..", "C:/x", "a\\..\\..\\x"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FolderError):
        safe_join(tmp_path, name)


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "evals").symlink_to(tmp_path / "out", target_is_directory=True)
    with pytest.raises(FolderError):
        safe_join(tmp_path / "run", "evals/metrics.json")
    assert safe_join(tmp_path / "run", "evals") == tmp_path / "run" / "evals"


def test_a_planted_state_cannot_make_overwrite_reach_outside(tmp_path: Path) -> None:
    (tmp_path / "victim.txt").write_text("mine", encoding="utf-8")
    finished(tmp_path / "a")
    state = read_state(tmp_path / "a") or {}
    (tmp_path / "a" / "bertkit.json").write_text(json.dumps({**state, "made": ["../victim.txt"]}), encoding="utf-8")
    with pytest.raises(FolderError, match="out of the run folder"):
        take(tmp_path / "a", overwrite=True)
    assert (tmp_path / "victim.txt").exists()


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    finished(tmp_path / "a")
    (tmp_path / "a" / "bertkit.json").write_text('{"state": "fin', encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read"):
        take(tmp_path / "a")
    for wrong in ('{"asked": 3}', '{"fingerprints": ["x"]}', '{"made": "x"}', '{"resolved": [1]}', "[]"):
        (tmp_path / "a" / "bertkit.json").write_text(wrong, encoding="utf-8")
        with pytest.raises(DataError, match="not a run's"):
            take(tmp_path / "a")


def test_changed_texts_are_differences(tmp_path: Path) -> None:
    with take(tmp_path / "a", fingerprints={"text": "aa"}):
        pass
    with take(tmp_path / "a", fingerprints={"text": "aa"}) as folder:
        assert folder.situation == "unfinished"
    with pytest.raises(FolderError, match=r'the text: "aa" before, "bb" now'):
        take(tmp_path / "a", fingerprints={"text": "bb"})


def test_the_log_is_cut_back_to_the_checkpoint(tmp_path: Path) -> None:
    with take(tmp_path / "a") as folder:
        folder.log({"event": "start"})
        for step in range(1, 6):
            folder.log({"step": step, "loss": float("nan") if step == 2 else step})
        with (folder.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"step": [1]}\n{"step": "two"}\n3\n{"step": 6, "lo')
        folder.truncate_log(3)
        folder.log({"step": 4, "loss": 0.5})
        records = [json.loads(line) for line in (folder.path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record.get("step") for record in records] == [None, 1, 2, 3, 4]
    assert records[2]["loss"] is None
    assert records[4]["loss"] == 0.5


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    write_text(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["x.json"]


def test_the_newest_finished_run_of_a_task_is_found(tmp_path: Path) -> None:
    for name, task, ended, state in (
        ("b", "sst2", "2026-01-02", "finished"),
        ("a", "sst2", "2026-01-03", "finished"),
        ("c", "sst2", "2026-01-04", "stopped"),
        ("d", "cola", "2026-01-05", "finished"),
    ):
        with take(tmp_path / name, command="finetune", facts={"task": task}) as folder:
            folder.record(state=state, ended=ended)
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "bertkit.json").write_text("{", encoding="utf-8")
    assert newest_run("finetune", task="sst2", root=tmp_path, hint="") == tmp_path / "a"
    with pytest.raises(MissingError) as caught:
        newest_run("finetune", task="mnli", root=tmp_path, hint="bertkit finetune mnli")
    assert (caught.value.exit_code, caught.value.hint) == (4, "bertkit finetune mnli")
    with pytest.raises(MissingError):
        newest_run("finetune", task="mnli", root=tmp_path / "nothing", hint="x")


@pytest.mark.parametrize("later", ["a", "b"])
def test_of_two_runs_that_ended_in_one_second_the_newest_is_found(tmp_path: Path, later: str) -> None:
    for name in "ab" if later == "b" else "ba":
        with take(tmp_path / name, command="finetune", facts={"task": "sst2"}) as folder:
            folder.record(state="finished", ended="2026-01-02T10:00:00Z")
        os.utime(tmp_path / name / "bertkit.json", ns=(0, 1_000 if name == later else 1))
    assert newest_run("finetune", task="sst2", root=tmp_path, hint="") == tmp_path / later


# Locks

HOLD = """
    import sys, time
    from pathlib import Path
    from bertkit.jobs.lock import Lock
    Lock(Path(sys.argv[1])).acquire()
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLD), str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_and_told_who_holds_the_folder(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(ResourceError) as caught:
            Lock(tmp_path).acquire()
        assert caught.value.exit_code == 5
        assert str(process.pid) in caught.value.message
        assert socket.gethostname() in caught.value.message
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert (tmp_path / "bertkit.lock").exists()
    again = Lock(tmp_path)  # killed: stale at once
    again.acquire()
    again.release()
    assert list(tmp_path.iterdir()) == []


def forge(folder: Path, **facts: Any) -> None:
    mine = Lock(folder)._facts()
    (folder / "bertkit.lock").write_text(json.dumps({**mine, "token": "other", **facts}), encoding="utf-8")


def test_a_recycled_process_id_is_no_holder(tmp_path: Path) -> None:
    forge(tmp_path)  # this very process, which lives
    with pytest.raises(ResourceError):
        Lock(tmp_path).acquire()
    forge(tmp_path, started="1")  # the same id, but a process that started at another time
    lock = Lock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_holder_elsewhere_is_gone_when_it_stops_touching_its_lock(tmp_path: Path) -> None:
    forge(tmp_path, machine="elsewhere", host="elsewhere")
    with pytest.raises(ResourceError, match="elsewhere"):
        Lock(tmp_path).acquire()
    old = (tmp_path / "bertkit.lock").stat().st_mtime - locks.GONE_AFTER - 1
    os.utime(tmp_path / "bertkit.lock", (old, old))
    lock = Lock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_lock_that_is_anothers_by_now_is_left_alone(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire()
    forge(tmp_path)
    lock.release()
    assert json.loads((tmp_path / "bertkit.lock").read_text(encoding="utf-8"))["token"] == "other"


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path: Path) -> None:
    forge(tmp_path, started="1")
    code = """
        import sys
        from pathlib import Path
        from bertkit.errors import ResourceError
        from bertkit.jobs.lock import Lock
        try:
            Lock(Path(sys.argv[1])).acquire()
            print("got", flush=True)
            sys.stdin.read()  # holds it until all have tried
        except ResourceError:
            print("refused", flush=True)
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    until, all_tried = os.pipe()
    many = [subprocess.Popen(argv, stdin=until, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    os.close(until)
    said = sorted(process.stdout.readline().strip() for process in many if process.stdout)
    os.close(all_tried)
    assert [process.communicate()[0] for process in many] == [""] * 4
    assert said == ["got", "refused", "refused", "refused"]
