"""The batch of any step, made again, is the one that the model was given."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from small_runs import at_step, call, done, end, flags, log, start, torchrun, write

from bertkit.errors import BertkitError, DataError, UsageError
from bertkit.jobs.console import Console
from bertkit.jobs.replay import Replay, replay

PROGRAM = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import os
from test_replay import recording
from bertkit.cli.main import run
with recording(Path(sys.argv[2]).with_suffix("." + os.environ.get("RANK", "0"))):
    sys.exit(run(sys.argv[3:]))
"""
# A text of few documents: an epoch has some twelve steps of 16 sequences.
BATCHES = "--batch-size 16 --micro-tokens 128 --eval-every 100 --save-every 100"


@contextmanager
def recording(path: Path) -> Iterator[None]:
    """Writes down, a line a forward pass of training, what the model is given."""
    from bertkit.tasks.models import TaskModel
    from bertkit.training.loop import Loop

    forward, accumulate = TaskModel.forward, Loop._accumulate

    def watched(self: Any, batch: Any) -> Any:
        if self.training:
            with path.open("a") as file:
                edges, nsp = batch.packed.boundaries.tolist(), batch.next_sentence_labels
                shown = [edges, batch.packed.input_ids.tolist(), batch.packed.token_type_ids.tolist()]
                shown += [batch.masked_positions.tolist(), batch.masked_labels.tolist(), None if nsp is None else nsp.tolist()]
                file.write(json.dumps(shown) + "\n")
        return forward(self, batch)

    def begun(self: Any, at: Any, batches: Any, counts: Any) -> Any:
        with path.open("a") as file:
            file.write(json.dumps([at.epoch, at.batch]) + "\n")
        return accumulate(self, at, batches, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskModel, "forward", watched)
        patch.setattr(Loop, "_accumulate", begun)
        yield


def sequences(paths: list[Path]) -> list[tuple[tuple[int, int], list[Any]]]:
    """``((epoch, batch), sequences)`` of each step, left-out ones too; of several processes, their shares in order."""
    steps: list[tuple[tuple[int, int], list[Any]]] = []
    for number, path in enumerate(paths):
        turn = -1
        for line in map(json.loads, path.read_text().splitlines()):
            if len(line) == 2:
                turn += 1
                if number == 0:
                    steps.append(((line[0], line[1]), []))
                assert steps[turn][0] == tuple(line)
                continue
            edges, ids, segments, positions, labels, nsp = line
            for row, (first, last) in enumerate(pairwise(edges)):
                masked = [(place - first, label) for place, label in zip(positions, labels, strict=True) if first <= place < last]
                pair = None if nsp is None else nsp[row]
                steps[turn][1].append([ids[first:last], segments[first:last], masked, pair])
    return steps


def told(found: Replay) -> list[Any]:
    """The same of a replay."""
    return [[s.after, s.segments, list(zip(s.masked_positions, s.labels, strict=True)), s.pair_label] for s in found.sequences]


def at(folder: Path, step: int) -> Replay:
    return replay(folder, step, Console(quiet=True))[0]


def equal(folder: Path, records: list[tuple[tuple[int, int], list[Any]]], left_out: set[tuple[int, int]] = frozenset()) -> None:  # type: ignore[assignment]
    """Every step's replay is what was recorded."""
    applied = [each for each in records if each[0] not in left_out]
    for number, (place, given) in enumerate(applied, start=1):
        found = at(folder, number)
        assert (found.epoch, found.batch) == place
        assert found.seen
        assert told(found) == given


@pytest.fixture(scope="module")
def short(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text whose epoch is soon over."""
    folder = tmp_path_factory.mktemp("short")
    blocks = corpus.read_text(encoding="utf-8").split("\n\n")
    write(folder / "valid.txt", [block.splitlines() for block in blocks[20:23]])
    return write(folder / "short.txt", [block.splitlines() for block in blocks[:9]])


def test_every_step_of_two_epochs_and_two_phases_stopped_and_resumed(short: Path, tmp_path: Path) -> None:
    argv = flags(short, tmp_path / "run", BATCHES, "--phases 16:0.75,32:0.25 --steps 40 --log-every 7")
    with recording(tmp_path / "seen"):
        for step in (5, 30, 33):
            with at_step(step, lambda course: course.console.stop.request(2)):
                assert call(*argv).code == 130
            ahead = at(tmp_path / "run", 40)  # not seen yet, and not by the last line of the log
            assert not ahead.seen
        done(*argv)
    records = sequences([tmp_path / "seen"])
    assert len(records) == 40
    assert max(epoch for (epoch, _), _ in records[:30]) >= 1  # a second epoch before the change
    equal(tmp_path / "run", records)
    assert told(at(tmp_path / "run", 40)) == told(ahead)
    assert [at(tmp_path / "run", step).phase for step in (30, 31)] == [1, 2]
    assert [at(tmp_path / "run", step).max_length for step in (30, 31)] == [16, 32]


def test_before_the_first_line_of_the_log_and_for_all_steps_to_come(short: Path, tmp_path: Path) -> None:
    """What will be seen is what is then seen: across epochs and the change of phase, with nothing logged of them."""
    argv = flags(short, tmp_path / "run", BATCHES, "--phases 16:0.75,32:0.25 --steps 40 --log-every 1000")
    with at_step(1, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    ahead = [told(at(tmp_path / "run", step)) for step in range(1, 41)]
    with recording(tmp_path / "seen"):
        done(*argv)
    assert [given for _, given in sequences([tmp_path / "seen"])] == ahead[1:]


def test_steps_that_were_left_out_use_up_batches(short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bertkit.training.loop import Loop

    real = Loop._accumulate
    broken = {(0, 3), (0, 4), (1, 1), (1, 2)}

    def accumulate(loop: Loop, place: Any, batches: Any, counts: Any) -> Any:
        sums, failed = real(loop, place, batches, counts)
        return (sums * math.nan if (place.epoch, place.batch) in broken else sums), failed

    monkeypatch.setattr(Loop, "_accumulate", accumulate)
    argv = flags(short, tmp_path / "run", BATCHES, "--phases 16:0.5,32:0.5 --steps 12 --log-every 1000")
    with recording(tmp_path / "seen"):
        with at_step(8, lambda course: course.console.stop.request(2)):
            assert call(*argv).code == 130
        done(*argv)
    equal(tmp_path / "run", sequences([tmp_path / "seen"]), broken)
    lines = [line for line in log(tmp_path / "run") if not line.get("left_out")]
    (tmp_path / "run" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError, match="which 4 steps were left out"):
        at(tmp_path / "run", 5)


@pytest.mark.slow
def test_two_processes_see_shares_of_it(short: Path, tmp_path: Path) -> None:
    """Uneven shares, two epochs, two phases, stopped in the first one and resumed."""
    argv = flags(
        short, tmp_path / "run", "--batch-size 15 --micro-tokens 100 --eval-every 100 --phases 16:0.75,32:0.25 --steps 40"
    )
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = [str(Path(__file__).parent), str(tmp_path / "seen"), *argv]
    found = end(start(arguments, tmp_path, launcher=[*torchrun(2), str(tmp_path / "program.py")]), tmp_path)
    assert found.code == 0, found.err
    equal(tmp_path / "run", sequences([tmp_path / "seen.0", tmp_path / "seen.1"]))


def test_masked_words_alone_and_whole_words(short: Path, tmp_path: Path) -> None:
    argv = flags(short, tmp_path / "run", BATCHES, "--objective mlm --steps 3 --masking word")
    with recording(tmp_path / "seen"):
        done(*argv)
    equal(tmp_path / "run", sequences([tmp_path / "seen"]))
    assert {s.pair_label for s in at(tmp_path / "run", 1).sequences} == {None}


def test_the_order_of_two_neighbours(short: Path, tmp_path: Path) -> None:
    argv = flags(short, tmp_path / "run", BATCHES, "--objective mlm+sop --steps 3 --masking span")
    with recording(tmp_path / "seen"):
        done(*argv)
    equal(tmp_path / "run", sequences([tmp_path / "seen"]))
    assert {s.pair_label for s in at(tmp_path / "run", 1).sequences} == {0, 1}
    assert all(len(set(s.documents)) == 1 for s in at(tmp_path / "run", 1).sequences)


def test_what_it_tells_of_a_sequence(short: Path, tmp_path: Path) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--steps 2"))
    found, wordpiece = replay(tmp_path / "run", 2, Console(quiet=True))
    documents = [" ".join(block.split()) for block in short.read_text(encoding="utf-8").split("\n\n")]
    plain = [wordpiece.decode(wordpiece.encode([text])[0]).replace(" ", "") for text in documents]
    for each in found.sequences:
        assert len(each.before) == len(each.after) == len(each.tokens) == len(each.segments) <= 32
        assert [each.before[place] for place in each.masked_positions] == each.labels
        same = [
            a == b for place, (a, b) in enumerate(zip(each.before, each.after, strict=True)) if place not in each.masked_positions
        ]
        assert all(same)
        assert len(each.texts) == len(each.documents) == 2
        assert (each.documents[0] == each.documents[1]) == (each.pair_label == 0)
        for text, document in zip(each.texts, each.documents, strict=True):
            assert text.replace(" ", "") in plain[document]
    assert json.loads(json.dumps(found.to_json()))["step"] == 2


# Refusals


def refused(kind: type[BertkitError], folder: Path, step: int) -> BertkitError:
    with pytest.raises(kind) as caught:
        at(folder, step)
    return caught.value


def test_a_text_that_has_changed_is_refused_by_name(short: Path, tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_bytes(short.read_bytes())
    done(*flags(text, tmp_path / "run", BATCHES, "--steps 2"))
    before = told(at(tmp_path / "run", 1))
    for new in (short.read_bytes() + b"\n\nOne more document. It is new.\n", short.read_bytes().replace(b"the", b"she")):
        text.write_bytes(new)
        error = refused(DataError, tmp_path / "run", 1)
        assert error.exit_code == 3
        assert str(text) in str(error.message)
    text.write_bytes(short.read_bytes())
    assert told(at(tmp_path / "run", 1)) == before


def test_a_bertkit_of_other_examples_makes_none(short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--steps 2"))
    monkeypatch.setattr("bertkit.jobs.pretrained_run.RULES", 1000)
    assert "other examples" in str(refused(DataError, tmp_path / "run", 1).message)


def test_a_vocabulary_that_has_changed_is_refused(short: Path, tmp_path: Path) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--steps 2"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "run" / name).unlink()
    vocabulary = tmp_path / "run" / "vocab.txt"
    vocabulary.write_bytes(vocabulary.read_bytes() + b"brandnew\n")
    assert refused(DataError, tmp_path / "run", 1).exit_code == 3


def test_steps_and_folders_that_are_none(short: Path, tmp_path: Path) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--epochs 0.5"))
    last = max(line["step"] for line in log(tmp_path / "run"))
    assert at(tmp_path / "run", last).seen
    for step in (0, -1, last + 1):
        assert f"1 to {last}" in str(refused(UsageError, tmp_path / "run", step).message)
    (tmp_path / "empty").mkdir()
    assert "no run" in str(refused(UsageError, tmp_path / "empty", 1).message)


def test_under_the_clock_a_change_that_may_come_is_not_sure(short: Path, tmp_path: Path) -> None:
    argv = flags(short, tmp_path / "run", BATCHES, "--phases 16:0.5,32:0.5 --max-minutes 5 --log-every 1")
    with at_step(3, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    assert at(tmp_path / "run", 3).sure
    ahead = at(tmp_path / "run", 500)
    assert (ahead.seen, ahead.sure, ahead.phase) == (False, False, 1)


def test_a_replay_on_a_page(short: Path, tmp_path: Path) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--phases 16:0.5,32:0.5 --steps 4"))
    page = done("corpus", "inspect", str(tmp_path / "run"), "--step", "3", "--show", "2").out
    assert "Step 3 was seen: epoch 2, batch 1, phase 2, L = 32, mlm+nsp, 8 sequences, the first 2 of them here." in " ".join(
        page.split()
    )
    assert "2. " in page
    assert "3. " not in page
    assert "[MASK=" in page
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) <= 80
    told_all = done("corpus", "inspect", str(tmp_path / "run"), "--step", "3", "--show", "2", "--json").object
    assert [s["after"] for s in told_all["sequences"]] == [s.after for s in at(tmp_path / "run", 3).sequences]


def test_a_text_of_several_files_in_a_folder(short: Path, tmp_path: Path) -> None:
    """One of them that has grown is known before anything is built."""
    (tmp_path / "texts").mkdir()
    blocks = short.read_text(encoding="utf-8").split("\n\n")
    for number in range(3):
        (tmp_path / "texts" / f"{number}.txt").write_text(
            "\n\n".join(blocks[3 * number : 3 * number + 3]) + "\n", encoding="utf-8"
        )
    done(*flags(tmp_path / "texts", tmp_path / "run", BATCHES, "--steps 2"))
    assert at(tmp_path / "run", 2).seen
    with (tmp_path / "texts" / "1.txt").open("a", encoding="utf-8") as file:
        file.write("\nOne more. It is new.\n")
    assert str(tmp_path / "texts") in str(refused(DataError, tmp_path / "run", 1).message)


def test_a_run_on_token_stores(short: Path, tmp_path: Path) -> None:
    """Their vocabulary is the run's, also before its first checkpoint."""
    done("corpus", "build", str(short), "--vocab-size", "300", "-o", str(tmp_path / "store"))
    argv = ["pretrain", "--corpus", str(tmp_path / "store"), "--size", "tiny", "--max-length", "32", "--batch-size", "8"]
    argv += ["--steps", "3", "--precision", "fp32", "-o", str(tmp_path / "run")]
    with recording(tmp_path / "seen"):
        done(*argv)
    records = sequences([tmp_path / "seen"])
    equal(tmp_path / "run", records)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "config.json"):
        (tmp_path / "run" / name).unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert told(at(tmp_path / "run", 2)) == records[1][1]


def test_without_any_log_the_checkpoints_tell_enough(short: Path, tmp_path: Path) -> None:
    done(*flags(short, tmp_path / "run", BATCHES, "--steps 20"))
    expected = [told(at(tmp_path / "run", step)) for step in (1, 15, 20)]
    (tmp_path / "run" / "log.jsonl").unlink()
    assert [told(at(tmp_path / "run", step)) for step in (1, 15, 20)] == expected
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert [told(at(tmp_path / "run", step)) for step in (1, 15, 20)] == expected
