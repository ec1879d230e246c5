"""What looks wrong is said in words, once, and nothing else is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bertkit.training.health import Health, unigram_reference


def test_unigram_reference_by_hand() -> None:
    """Counts 3, 0, 5 become 4, 1, 6 of 11."""
    frequencies = np.array([3, 0, 5])
    expected = -(math.log(4 / 11) + 2 * math.log(1 / 11) + math.log(6 / 11)) / 4
    assert unigram_reference(frequencies, np.array([0, 1, 1, 2])) == pytest.approx(expected)


def course(health: Health, losses: dict[int, dict[str, float]], **options: object) -> dict[int, list[str]]:
    said = {}
    for step, parts in losses.items():
        values = {"targets": 2_000_000, "rate": 1e-4, "warming": step < 10} | options
        if words := health.update(step, parts, **values):  # type: ignore[arg-type]
            said[step] = words
    return said


def test_stuck_at_7() -> None:
    said = course(Health(reference=7.4), {step: {"mlm": 7.38, "nsp": 0.3} for step in range(1, 400)})
    assert len(said) == 1
    (step, words), *_ = said.items()
    assert 10 <= step <= 14  # held for a fifth of the steps as soon as the warm-up is over
    assert "7.38" in words[0]
    assert "7.40" in words[0]
    assert "learning rate" in words[0]
    assert "duplicate" in words[0]


def test_falling_loss_is_healthy() -> None:
    """5 000 targets a step: a million after 200 steps, when the loss is at 3.2 and the pairs at 0.46."""
    losses = {step: {"mlm": 3 + 6 * math.exp(-step / 60), "nsp": 0.69 * math.exp(-step / 500)} for step in range(1, 1000)}
    health = Health(reference=7.4)
    for step, parts in losses.items():
        assert health.update(step, parts, targets=5000 * step, rate=1e-4, warming=step < 100) == []


def test_a_short_relapse_is_no_alarm() -> None:
    """Thirty of 230 steps are less than a fifth, also when the smoothed loss follows."""
    losses = {step: {"mlm": 12.0 if 200 <= step < 230 else 6.0} for step in range(1, 400)}
    assert course(Health(reference=7.4), losses) == {}


def test_neither_before_a_million_targets_nor_in_the_warmup() -> None:
    losses = {step: {"mlm": 7.4, "nsp": 0.6931} for step in range(1, 400)}
    assert course(Health(reference=7.4), losses, targets=999_999) == {}
    assert course(Health(reference=7.4), losses, warming=True) == {}


@pytest.mark.parametrize("pairs", ["nsp", "sop"])
def test_pairs_told_apart_by_a_coin(pairs: str) -> None:
    said = course(Health(reference=7.4), {step: {"mlm": 4.0, pairs: 0.6935} for step in range(1, 400)})
    assert len(said) == 1
    words = next(iter(said.values()))[0]
    assert "ln 2" in words
    assert "document boundaries" in words
    assert course(Health(), {step: {"mlm": 4.0, pairs: 0.66} for step in range(1, 400)}) == {}


def test_rate_of_0_and_losses_that_are_not_finite() -> None:
    health = Health()
    assert health.update(1, {"mlm": 9.0}, targets=1, rate=0.0, warming=True) == []
    said = health.update(20, {"mlm": 9.0}, targets=1, rate=0.0, warming=False)
    assert len(said) == 1
    assert "rate is 0" in said[0]
    said = health.update(20, {"mlm": math.nan}, targets=1, rate=1e-4, warming=False, applied=False)
    assert "step 21" in said[0]
    assert health.update(20, {"mlm": math.inf}, targets=1, rate=1e-4, warming=False, applied=False) == []  # once
    assert all(math.isfinite(value) for value in health.smoothed.values())


def test_state_survives_a_resume() -> None:
    losses = {step: {"mlm": 7.4, "nsp": 0.2} for step in range(1, 300)}
    whole = course(Health(reference=7.4), losses, targets=2_000_000)
    health = Health(reference=7.4)
    first = course(health, {step: losses[step] for step in range(1, 8)})
    health = Health.from_json(json.loads(json.dumps(health.to_json())))
    assert first | course(health, {step: losses[step] for step in range(8, 300)}) == whole
