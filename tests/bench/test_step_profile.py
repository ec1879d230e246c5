import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "recipes" / "bench" / "step_profile.py"


@pytest.mark.slow
def test_the_profile_of_a_step_books_all_time_and_finds_every_product_of_a_layer() -> None:
    command = [sys.executable, str(SCRIPT), "--size", "tiny", "--batch-size", "2", "--seconds", "0.5"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    kinds = told["kinds"]
    assert sum(kinds.values()) == pytest.approx(1, abs=0.01)
    assert min(kinds[name] for name in ("products of matrices", "AdamW and the gradients' norm", "GELU and its slope")) > 0.001
    # A layer: queries, keys and values at once, attention's way out, two of the feed-forward; forward, and two for each backward.
    assert told["products_in_a_step"] >= 2 * 4 * 3
    assert told["share of the product"]["floor"] > told["share of the product"]["reached"] > 0
