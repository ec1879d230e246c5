"""``bertkit fill-mask``: the words that a model would put for each ``[MASK]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np
import torch

from bertkit.errors import DataError, MissingError
from bertkit.jobs.console import Console
from bertkit.jobs.models import model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.packed import PackedSequences
from bertkit.settings.commands import FillMaskSettings
from bertkit.tasks.models import load_model


def fill_mask(settings: FillMaskSettings, console: Console, stdin: TextIO | None = None) -> Outcome:
    """Prints the likeliest words of each mask with their probabilities.

    Raises:
        DataError: A text without ``[MASK]``, or one that is longer than the model's positions (exit 3).
        ModelError: The model has no masked-LM head (exit 3).
        MissingError: No text is named, and stdin holds none (exit 4).
    """
    machine = Machine.of(settings.device)
    texts = list(settings.texts)
    if not texts:
        console.reading(stdin or sys.stdin)
        texts = [line.rstrip("\r\n") for line in stdin or sys.stdin]
    if not texts:
        raise MissingError("There is no text on stdin.", where="stdin", hint='Pipe texts in, or name one: "the [MASK] sat".')
    filled = masks_of(settings.model, texts, cased=settings.cased, top=settings.top, machine=machine)
    for text, masks in zip(texts, filled, strict=True):
        console.result(text)
        for number, words in enumerate(masks, 1):
            ranked = "  ".join(f"{word} {100 * share:.1f}%" for word, share in words)
            console.result(f"  {ranked}" if len(masks) == 1 else f"  [MASK] {number}: {ranked}")
    found = [
        {"text": text, "masks": [[{"word": word, "probability": share} for word, share in words] for words in masks]}
        for text, masks in zip(texts, filled, strict=True)
    ]
    return Outcome(extra={"filled": found})


def masks_of(
    model: str, texts: Sequence[str], *, machine: Machine, cased: bool | None = None, top: int = 5
) -> list[list[list[tuple[str, float]]]]:
    """For each text, for each of its masks, the ``top`` likeliest entries and their probabilities, best first."""
    folder = model_folder(model)
    wordpiece = tokenizer_of(folder, cased=cased)
    network, _ = load_model(folder, "masked_lm", must_have_head=True)
    network = network.to(machine.device).eval()
    found: list[list[list[tuple[str, float]]]] = []
    for text in texts:
        ids = np.concatenate([[wordpiece.cls_id], wordpiece.encode_masked(text), [wordpiece.sep_id]])
        places = np.flatnonzero(ids == wordpiece.mask_id)
        if not len(places):
            raise DataError(
                "There is no [MASK] in this text.",
                where=text[:80],
                hint='Put [MASK] where a word is to be filled in: "the [MASK] sat".',
            )
        most = network.config.max_position_embeddings
        if len(ids) > most:
            raise DataError(f"This text has {len(ids)} tokens, and the model has {most} positions.", where=text[:80])
        found.append([_best(scores, wordpiece, top) for scores in _scores(network, ids, places, machine)])
    return found


def _scores(network: Any, ids: np.ndarray, places: np.ndarray, machine: Machine) -> torch.Tensor:
    """``[P, V]`` probabilities at ``places``."""
    tokens = torch.from_numpy(ids.astype(np.int64))
    packed = PackedSequences.from_lengths(tokens, torch.zeros_like(tokens), torch.tensor([len(ids)])).to(machine.device)
    with torch.no_grad(), machine.accelerator.autocast():
        logits = network.outputs(packed, torch.from_numpy(places).to(machine.device))
    shares: torch.Tensor = logits.float().softmax(-1).cpu()
    return shares


def _best(shares: torch.Tensor, wordpiece: Any, top: int) -> list[tuple[str, float]]:
    best = shares.topk(min(top, len(shares)))
    return [(wordpiece.vocabulary[int(i)], float(share)) for share, i in zip(best.values, best.indices, strict=True)]
