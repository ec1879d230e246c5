"""The program as people call it: streams, the one JSON object, exit codes, nearest names, a quick start."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import typer

from bertkit import __version__
from bertkit.cli import main as program
from bertkit.cli import session as sessions
from bertkit.cli.failures import as_error
from bertkit.cli.main import normalised, run
from bertkit.errors import DataError, DivergedError, ResourceError
from bertkit.jobs.outcome import Outcome
from bertkit.notices import Notice, say
from bertkit.settings.commands import finetune_settings
from bertkit.settings.layers import keys

TEXT = "hello there you\nnice to see you there\n\nsecond document here\nhello again\n"
FIELDS = {"ok", "schema", "version", "command", "state", "output", "metrics", "warnings", "seconds"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BERTKIT_DEBUG", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = run(argv)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def bertkit(*argv: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "bertkit", *argv], cwd=cwd, capture_output=True, env={**os.environ, **environment}, check=False
    )


def job_in_place(monkeypatch: pytest.MonkeyPatch, job: Any) -> None:
    """Puts a job of the test in the place of ``bertkit tasks``, whose function has no settings to make."""
    monkeypatch.setattr("bertkit.cli.tasks._list", lambda console, task_file: job(console))


def raising(error: BaseException) -> Any:
    def job(console: Any) -> Outcome:
        raise error

    return job


# Start-up

HEAVY = ("torch", "transformers", "datasets", "evaluate", "accelerate")


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["pretrain", "--help"],
        ["finetune", "--help"],
        ["tasks"],
        ["recipes", "ls"],
        ["corpus", "ls"],
        ["pretrian"],
    ],
)
def test_nothing_heavy_is_imported_for_a_word_of_help(here: Path, argv: list[str]) -> None:
    code = f"from bertkit.cli.main import run; run({argv!r}); import sys; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("argv", [["--help"], ["tasks"], ["finetune", "--help"]])
def test_help_takes_little_time(here: Path, argv: list[str]) -> None:
    # CPU time, the best of three at most: an imported torch alone is 2 s, bare Typer with rich 0.3 s.
    best, runs = 9.0, 0
    while best >= 1.0 and runs < 3:
        runs += 1
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert bertkit(*argv, cwd=here).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert best < 1.0


def test_help_lists_the_commands_and_about_twenty_flags_of_their_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for name in (
        "quickstart",
        "pretrain",
        "finetune",
        "eval",
        "predict",
        "fill-mask",
        "explain",
        "embed",
        "corpus",
        "tokenizer",
        "tasks",
    ):
        assert f" {name} " in out
    assert call(capsys)[1] == out  # the bare name helps, too
    for group in ("corpus", "tokenizer", "recipes"):
        code, told, _ = call(capsys, group)
        assert (code, told) == (0, call(capsys, group, "--help")[1])
    assert call(capsys, "--version")[1] == f"bertkit {__version__}\n"


@pytest.mark.parametrize(
    "command", ["pretrain", "finetune", "eval", "predict", "fill-mask", "explain", "quickstart", "tokenizer train"]
)
def test_help_at_80_columns_cuts_no_name(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(capsys, *command.split(), "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out.replace("FILE…", "").replace("TEXT…", "")
    assert "\n  --help " in out
    if command == "pretrain":
        assert "--validation-file, --valid FILE" in out
        assert out.index("Training:") < out.index("--learning-rate, --lr X") < out.index("Every command:")


def test_every_setting_is_listed_with_what_it_takes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "pretrain", "--set", "help")
    assert code == 0
    assert "masking.random_share  (number, 0.1 unless given)\n    Share of the chosen" in out
    assert "masking.kind  (token|word" in out
    code, out, _ = call(capsys, "finetune", "squad", "--set", "help", "--json")
    listed = {setting["key"]: setting for setting in json.loads(out)["settings"]}
    assert (code, listed["kind.max_length"]["default"], listed["kind.max_length"]["takes"]) == (0, 384, "whole number")
    assert set(listed) == set(keys(finetune_settings("squad")))
    assert all(setting["description"] and "typing" not in setting["takes"] for setting in listed.values())
    assert list(here.iterdir()) == [here / "a.txt"]


# The JSON object


def test_success_is_one_object_with_its_fields(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "tokenizer", "train", "a.txt", "--vocab-size", "40", "--json")
    told = json.loads(out)
    assert (code, out.count("\n")) == (0, 1)
    assert set(told) >= FIELDS
    assert (told["ok"], told["schema"], told["version"], told["command"]) == (True, 1, __version__, "tokenizer train")
    assert (told["state"], told["output"]) == ("finished", "runs/a-tokenizer")
    assert "vocabulary-size" in [warning["kind"] for warning in told["warnings"]]
    assert told["seconds"] >= 0
    assert "vocabulary" in err


def test_figures_that_do_not_exist_are_null_and_extra_hides_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(console: Any) -> Outcome:
        print("a library prints")
        say("k", "said \x1b[31m")
        console.result("shown")
        return Outcome(
            metrics={"pearson": float("nan"), "loss": float("inf"), "accuracy": 0.5},
            extra={"ok": "no", "more": 1},
            warnings=(Notice("w", "late"),),
        )

    job_in_place(monkeypatch, job)
    code, out, err = call(capsys, "tasks", "--json")
    told = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert code == 0
    assert told["metrics"] == {"pearson": None, "loss": None, "accuracy": 0.5}
    assert (told["ok"], told["more"]) == (True, 1)
    assert [warning["kind"] for warning in told["warnings"]] == ["k", "w"]
    assert "a library prints" in err  # not on stdout, where the object is
    code, out, _ = call(capsys, "tasks")
    assert out == "shown\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["pretrian"], "'pretrain'"),
        (["pretrain", "--learning-rat", "1"], "'--learning-rate'"),
        (["pretrain", "--steps", "many"], "--steps"),
        (["pretrain", "--steps"], "--steps"),
        (["pretrain", "a.txt"], "a.txt"),
        (["recipes", "shwo"], "'show'"),
        (["recipes", "show"], "NAME"),
        (["tokenizer", "train"], "FILE is needed"),
        (["corpus", "build"], "PATH is needed"),
        (["explain", "a", "b", "c"], "texts takes 2 at most, not 3."),
        (["pretrain", "--corpus", "a.txt", "b.txt"], "--corpus 'folder/*.txt'"),
        (["tokenizer", "train", "a.txt", "--set", "corpus.document=line"], "'corpus.documents'"),
        (["tokenizer", "train", "a.txt", "--documents", "lines"], "'line'"),
        (["predict", "sst2"], "--output predictions.jsonl"),
        (["--wrong"], "--wrong"),
    ],
)
def test_wrong_usage_is_exit_2_one_object_and_the_nearest_name(
    here: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    code, out, err = call(capsys, *argv, "--json")
    told = json.loads(out)
    assert code == told["exit_code"] == 2
    assert set(told) == {"ok", "schema", "error", "exit_code"}
    assert set(told["error"]) == {"kind", "message", "where", "hint"}
    assert said in json.dumps(told["error"], ensure_ascii=False)
    assert "Traceback" not in err
    assert said in err


def test_without_json_stdout_stays_empty_on_failure(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "pretrian")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "Error: There is no command 'pretrian'. Did you mean 'pretrain'? (bertkit)"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["finetune", "mnly"], "'mnli'"),
        (["finetune"], "bertkit tasks"),
        (["finetune", "sst2", "--set", "kind.stide=1"], "There is no setting"),
        (["pretrain", "--corpus", "a.txt", "--size", "minni", "--lr", "-1"], "2 settings cannot be right"),
    ],
)
def test_wrong_settings_of_the_large_commands(here: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str) -> None:
    code, _, err = call(capsys, *argv)
    assert code == 2
    assert said in err


def test_missing_things_are_exit_4(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "recipes", "show", "finetune-papr")
    assert code == 4
    assert "Did you mean 'finetune-paper'?" in err
    assert call(capsys, "tokenizer", "train", "b.txt")[0] == 4
    assert call(capsys, "pretrain", "--recipe", "nothing.yaml")[0] == 4


# Failures


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (DataError("bad byte", where="b.txt, line 2", hint="Use replace."), 3, "Error: bad byte (b.txt, line 2)\n  Use replace."),
        (DivergedError("NaN"), 6, "NaN"),
        (ResourceError("locked"), 5, "locked"),
        (MemoryError(), 5, "Memory ran out."),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 5, "The disk is full"),
        (OSError(errno.EDQUOT, "Quota"), 5, "The disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 5, "Permission denied. (x)"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 4, "(x)"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (ValueError("broken\nthings"), 1, "BERTKIT_DEBUG=1"),
        (AssertionError(), 1, "AssertionError"),
    ],
)
def test_every_failure_has_its_exit_code_and_no_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int, said: str
) -> None:
    job_in_place(monkeypatch, raising(failure))
    found, out, err = call(capsys, "tasks")
    assert (found, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    found, out, err = call(capsys, "tasks", "--json")
    assert json.loads(out)["exit_code"] == found == code


def test_an_out_of_memory_error_of_torch_is_a_resource() -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    assert as_error(OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")).exit_code == 5
    assert as_error(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")).exit_code == 5


def test_debug_shows_the_traceback(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    job_in_place(monkeypatch, raising(ValueError("broken")))
    monkeypatch.setenv("BERTKIT_DEBUG", "1")
    code, out, err = call(capsys, "tasks", "--json")
    assert code == 1
    assert "Traceback" in err
    assert json.loads(out)["error"]["kind"] == "bug"


def test_later_processes_speak_only_of_what_befell_them(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    job_in_place(monkeypatch, raising(DataError("bad byte")))
    assert call(capsys, "tasks", "--json") == (3, "", "")
    job_in_place(monkeypatch, raising(ResourceError("out of memory")))
    code, out, err = call(capsys, "tasks", "--json")
    assert (code, out) == (5, "")
    assert err.startswith("[process 1] Error: out of memory")


def test_escapes_in_arguments_do_not_reach_the_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = call(capsys, "recipes", "show", "\x1b[2J")
    assert "\x1b" not in err


# Arguments


def test_underscores_are_taken_and_values_kept() -> None:
    assert normalised(["pretrain", "--learning_rate", "1", "--max_steps=3", "--set", "a_b=c_d", "-o", "x_y", "--", "--a_b"]) == [
        "pretrain", "--learning-rate", "1", "--max-steps=3", "--set", "a_b=c_d", "-o", "x_y", "--", "--a_b",
    ]  # fmt: skip


@pytest.mark.parametrize("flag", ["--vocab_size=30", "--vocab-size=30"])
def test_both_spellings_reach_the_settings(here: Path, capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert call(capsys, "tokenizer", "train", "a.txt", flag, "-o", "t", "-q") == (0, "t\n", "")
    assert len((here / "t" / "vocab.txt").read_text(encoding="utf-8").splitlines()) == 30


def test_the_flags_of_training_arrive_where_they_belong(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def job(settings: Any, console: Any) -> Outcome:
        seen.append(settings)
        return Outcome()

    pretrain = pytest.importorskip("bertkit.jobs.pretrain")
    monkeypatch.setattr(pretrain, "pretrain", job)
    argv = (
        "pretrain --corpus a.txt --corpus b.txt --valid v.txt --size tiny --objective mlm --max-length 64 "
        "--mlm-probability 0.2 --masking span --lr 1e-3 --warmup 0.05 --batch-size 8 --micro-tokens 512 --steps 7 --epochs 1.5 "
        "--max-minutes 2 --precision fp32 --seed 3 --workers 0 --log-every 5 --eval-every 10m --save-every 20 "
        "--keep-checkpoints 4 --keep-best --report-to tensorboard --vocab-size 99 --documents line "
        "--encoding-errors replace --uncased -o out --overwrite --set optimizer.beta2=0.98"
    )
    assert run(argv.split()) == 0
    (settings,) = seen
    assert settings.inputs.corpus == ("a.txt", "b.txt")
    assert settings.inputs.validation == ("v.txt",)
    assert (settings.model.size, settings.examples.objective, settings.examples.max_length) == ("tiny", "mlm", 64)
    assert (settings.masking.kind, settings.masking.span_p, settings.masking.span_most) == ("span", 0.2, 10)
    assert (settings.masking.probability, settings.optimizer.learning_rate, settings.schedule.warmup) == (0.2, 1e-3, 0.05)
    assert (settings.batch.size, settings.batch.micro_tokens) == (8, 512)
    assert (settings.budget.steps, settings.budget.epochs, settings.budget.max_minutes) == (7, 1.5, 2.0)
    assert (settings.device.precision, settings.run.seed, settings.run.workers) == ("fp32", 3, 0)
    assert (settings.run.log_every, settings.run.eval_every, settings.run.save_every) == (5, "10m", 20)
    assert (settings.run.keep_checkpoints, settings.run.keep_best, settings.run.report_to) == (4, True, ("tensorboard",))
    assert (settings.tokenizer.vocab_size, settings.tokenizer.cased) == (99, False)
    assert (settings.corpus.documents, settings.corpus.encoding_errors) == ("line", "replace")
    assert (settings.output, settings.overwrite, settings.optimizer.beta2) == ("out", True, 0.98)


def test_the_recorded_command_holds_no_secret() -> None:
    line = sessions.Session(["pretrain", "--model", "https://me:hunter2@host/x", "--set", "a=hf_abcdefghij1234567890"]).line
    assert "hunter2" not in line
    assert "hf_a" not in line
    assert line.startswith("bertkit pretrain --model https://***@host/x")


# Presets


def test_recipes_are_listed_shown_and_copied_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "recipes", "ls")
    assert code == 0
    assert "pretrain-mini-cpu" in out
    assert len(json.loads(call(capsys, "recipes", "ls", "--json")[1])["recipes"]) >= 3
    _, shown, _ = call(capsys, "recipes", "show", "finetune-paper")
    assert call(capsys, "recipes", "cp", "finetune-paper") == (0, "finetune-paper.yaml\n", "")
    assert (here / "finetune-paper.yaml").read_text(encoding="utf-8") == shown
    code, _, err = call(capsys, "recipes", "cp", "finetune-paper")
    assert code == 2
    assert "there already" in err


def test_tasks_are_listed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "tasks")
    assert {line.split()[0] for line in out.splitlines()} >= {"cola", "sst2", "mnli", "squad", "conll2003", "classification"}
    (mnli,) = [task for task in json.loads(call(capsys, "tasks", "--json")[1])["tasks"] if task["name"] == "mnli"]
    assert mnli["labels"] == ["entailment", "neutral", "contradiction"]


# Whole processes


@pytest.mark.slow
def test_two_streams_without_escapes_or_carriage_returns(here: Path) -> None:
    done = bertkit("tokenizer", "train", "a.txt", "--vocab-size", "40", cwd=here)
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    assert b"runs/a-tokenizer" in done.stdout
    assert b"runs/a-tokenizer" not in done.stderr
    assert b"\r" not in done.stdout + done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.slow
def test_an_ascii_locale_does_no_harm(here: Path) -> None:
    (here / "données.txt").write_text(TEXT + "é中 é中\n", encoding="utf-8")
    done = bertkit("tokenizer", "train", "données.txt", "--vocab-size", "40", "--output-dir", "résultats", cwd=here, **ASCII)
    assert done.returncode == 0, done.stderr
    assert b"r\\xe9sultats" in done.stdout
    assert "中" in (here / "résultats" / "vocab.txt").read_text(encoding="utf-8")
    done = bertkit("tokenizer", "train", "données.txt", "--vocab-size", "40", "-o", "é", "--json", cwd=here, **ASCII)
    assert json.loads(done.stdout.decode("ascii"))["output"] == "é"
    for argv in (["--help"], ["pretrain", "--help"], ["tasks"], ["tokenizer", "train", "ñ.txt"]):
        done = bertkit(*argv, cwd=here, **ASCII)
        assert done.returncode in (0, 4)
        assert (done.stdout + done.stderr).isascii()
        assert b"Error: This is a bug" not in done.stderr


def test_colours_are_left_out_where_no_color_asks(here: Path) -> None:
    done = bertkit("--help", cwd=here, NO_COLOR="1", FORCE_COLOR="1")
    assert done.returncode == 0
    assert b"\x1b[3" not in done.stdout


def test_a_reader_that_leaves_is_no_error(here: Path) -> None:
    code = f"{sys.executable} -m bertkit tasks | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=here, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen([sys.executable, "-m", "bertkit", "tasks"], stdout=writer, stderr=subprocess.PIPE, cwd=here)
    os.close(writer)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_exit_5(here: Path) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "bertkit", "tasks"], stdout=full, stderr=subprocess.PIPE, cwd=here, check=False
        )
    assert done.returncode == 5
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize(("text", "code"), [("A line.\n\nAnother.\n", 0), ("", 3)])
def test_work_and_exit_code_outlive_the_reader_of_messages(here: Path, text: str, code: int) -> None:
    """As with `2>&1 | head -1`, or a log whose reader was killed."""
    Path("a.txt").write_text(text)
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "bertkit", "tokenizer", "train", "a.txt", "--vocab-size", "40", "-o", "out"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=writer, cwd=here, check=False)
    os.close(writer)
    assert done.returncode == code
    assert (here / "out" / "vocab.txt").exists() == (code == 0)


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(here: Path, closed: str) -> None:
    line = f"{sys.executable} -m bertkit corpus ls {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, cwd=here, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


WAITING = """
    import sys, time
    import bertkit.cli.tasks
    from bertkit.cli.main import run
    from bertkit.jobs.outcome import Outcome

    def job(console):
        print("ready", file=sys.stderr, flush=True)
        DEFER
        return Outcome()

    bertkit.cli.tasks._list = lambda console, task_file: job(console)
    sys.exit(run(["tasks", "--json"]))
"""
AT_ONCE = "time.sleep(60)"
DEFERRED = "\n        ".join(["with console.stop.deferred():", "    for _ in range(600): console.stop.check(); time.sleep(0.05)"])


@pytest.mark.parametrize("defer", [AT_ONCE, DEFERRED], ids=["at once", "at a safe point"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_with_their_code_and_one_object(here: Path, number: signal.Signals, code: int, defer: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WAITING.replace("DEFER", defer))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert json.loads(out)["exit_code"] == code
    assert "Traceback" not in err


def test_a_usage_error_of_any_typer_is_known_by_what_it_can_do() -> None:
    app = typer.Typer()
    app.command()(lambda count=3: None)
    with pytest.raises(Exception, match="nothing") as caught:
        app(["--nothing"], standalone_mode=False)
    assert as_error(caught.value).exit_code == 2
    assert program.normalised([]) == []


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR])
def test_a_place_that_cannot_be_is_wrong_usage_and_no_bug(number: int) -> None:
    error = as_error(OSError(number, os.strerror(number), "runs/x"))
    assert (error.exit_code, error.where) == (2, "runs/x")


def test_too_many_open_files_are_a_resource() -> None:
    assert as_error(OSError(errno.EMFILE, os.strerror(errno.EMFILE))).exit_code == 5


def test_the_tasks_fit_80_columns_with_their_data_metric_and_defaults(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "tasks")
    lines = out.splitlines()
    assert code == 0
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.startswith("stsb "))
    assert lines[at + 1].strip() == "pearson; nyu-mll/glue; 128 tokens, 32 rows, 3 epochs"
    told = {task["name"]: task for task in json.loads(call(capsys, "tasks", "--json")[1])["tasks"]}
    assert told["squad"]["defaults"] == {"max_length": 384, "batch_size": 32, "epochs": 2.0}
    assert told["mrpc"]["metrics"] == ["f1", "accuracy", "f1_macro", "matthews"]
    assert told["multilabel"]["data"] is None
