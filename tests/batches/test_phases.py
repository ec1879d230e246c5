"""Phases: how they are written, how large their batches are, and one source made of theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from bertkit.batches.loader import iterate
from bertkit.batches.phases import Phase, PhasedSource, Phases, phases_text, sequences
from bertkit.batches.source import Position
from bertkit.fields import Settings


class Held(Settings):
    phases: Phases = Field(())


def read(value: Any) -> tuple[Phase, ...]:
    return Held.model_validate_json(json.dumps({"phases": value})).phases


class Counted:
    """``sizes[epoch]`` steps; a step is its own name."""

    def __init__(self, name: str, *sizes: int) -> None:
        self.name, self.sizes = name, sizes
        self.micro_tokens: int | None = 512

    def steps(self, epoch: int) -> int:
        return self.sizes[epoch % len(self.sizes)]

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[Any]:
        return [f"{self.name}{epoch}.{index} {rank}/{world} {self.micro_tokens}"]


def test_a_text_and_a_list_are_the_same_phases() -> None:
    phases = read("128:0.9, 512:.1")
    assert phases == read([{"max_length": 128, "share": 0.9}, {"max_length": 512, "share": 0.1}])
    assert phases == (Phase(max_length=128, share=0.9), Phase(max_length=512, share=0.1))
    assert read(phases_text(phases)) == phases
    assert read([]) == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("128:0.9,512:0.2", "come to 1.1, and must come to 1"),
        ("128:0.9", "come to 0.9"),
        ("128", "such as 128:0.9,512:0.1, not '128'"),
        ("", "such as"),
        ("128:90%,512:10%", "such as"),
        ("4:0.5,128:0.5", "greater than or equal to 8"),
        ("128:0,512:1", "greater than 0"),
        ([{"max_length": 128}], "its max_length and its share"),
        ([{"length": 128, "share": 1}], "its max_length and its share"),
        (["128:1"], "its max_length and its share"),
        ({"128": 1}, "valid array"),
    ],
)
def test_what_are_no_phases(wrong: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        read(wrong)


@given(size=st.integers(1, 4096), first=st.integers(8, 1024), length=st.integers(8, 1024))
def test_the_tokens_of_a_step_are_kept(size: int, first: int, length: int) -> None:
    found = sequences(size, Phase(max_length=first, share=0.5), Phase(max_length=length, share=0.5))
    assert found >= 1
    assert found == 1 or abs(found * length - size * first) <= length / 2  # to the nearest whole sequence


def test_512_has_a_quarter_of_the_sequences_of_128() -> None:
    assert sequences(64, Phase(max_length=128, share=0.9), Phase(max_length=512, share=0.1)) == 16


def test_epochs_count_on_through_the_phases() -> None:
    source = PhasedSource([Counted("a", 3), Counted("b", 2), Counted("c", 5)])
    assert (source.phase, source.start(Position(0, 2))) == (0, Position(0, 2))
    second = source.changed(Position(1, 2))  # in the middle of epoch 1
    assert (second.began, second.phase, second.start(Position(1, 2))) == ((0, 2), 1, Position(2, 0))
    assert second.start(Position(3, 1)) == Position(3, 1)
    assert [second.steps(epoch) for epoch in range(4)] == [3, 3, 2, 2]
    assert second.step(1, 2) == ["a1.2 0/1 512"]
    assert second.step(3, 1, 1, 2) == ["b3.1 1/2 512"]
    third = second.changed(Position(1, 2))  # a phase without a step
    assert (third.began, third.start(Position(1, 2))) == ((0, 2, 3), Position(3, 0))
    for began in ((), (1,), (0, 0), (0, 2, 1), (0, 1, 2, 3)):
        with pytest.raises(ValueError, match="phases that began"):
            PhasedSource(source.sources, began)


def test_a_batch_comes_once_across_a_change() -> None:
    """As a loader asks for them, with batches ready ahead that the change leaves unused."""
    source = PhasedSource([Counted("a", 3), Counted("b", 2)])
    done, seen = Position(), []
    for count in (4, 3):
        feed = iterate(source, start=source.start(done))
        for _ in range(count):
            done, (name,) = next(feed)
            seen.append(name.split()[0])
        feed.close()
        source = source.changed(done) if source.phase == 0 else source
    assert seen == ["a0.0", "a0.1", "a0.2", "a1.0", "b2.0", "b2.1", "b3.0"]


def test_micro_batches_are_cut_in_every_phase_and_in_no_other_source() -> None:
    import copy

    source = PhasedSource([Counted("a", 3), Counted("b", 2)], (0, 1))
    smaller = copy.copy(source)
    smaller.micro_tokens = 64
    assert [smaller.step(epoch, 0)[0].split()[-1] for epoch in (0, 1)] == ["64", "64"]
    assert [source.step(epoch, 0)[0].split()[-1] for epoch in (0, 1)] == ["512", "512"]
