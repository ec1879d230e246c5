"""``bertkit eval blimp``: of two sentences, is the grammatical one the likelier to a pretrained model?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError
from bertkit.jobs.console import Console, points
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.probe import Probed, open_probed
from bertkit.jobs.start import Machine
from bertkit.labelled.blimp import SETS, SentencePair, read_blimp
from bertkit.metrics.minimal_pairs import accuracies, average, credit, interval
from bertkit.notices import say
from bertkit.settings.probes import BlimpSettings
from bertkit.tasks.kinds import Prediction
from bertkit.tasks.pseudo_likelihood import MaskedCopies, log_likelihoods


def eval_blimp(settings: BlimpSettings, machine: Machine, console: Console) -> Outcome:
    """Scores a pretrained model on BLiMP and leaves ``evals/blimp/`` in its folder.

    Raises:
        UsageError: A file is none of BLiMP's (exit 2).
        DataError: A file holds something else, or a sentence is longer than the model's positions (exit 3).
        ModelError: The model has no masked-LM head (exit 3).
        MissingError: No model or data (exit 4).
    """
    sets = machine.peers.main_only(lambda: read_blimp(Path(settings.data.folder), limit=settings.data.max_eval_samples))
    probed = open_probed(settings, machine, "blimp", pairs=False)
    pairs = [pair for found in sets.values() for pair in found]
    numbers, sentences = _sentences(pairs, probed)
    scores = _scores(sentences, probed, console)
    if not machine.peers.main:
        return Outcome()
    _say_what_is_there(sets, numbers, sentences, probed.wordpiece)
    found = [(float(scores[good]), float(scores[bad])) for good, bad in numbers]
    credits: dict[str, list[float]] = {}
    for pair, both in zip(pairs, found, strict=True):
        credits.setdefault(pair.set, []).append(credit(*both))
    by_set = accuracies(credits)
    by_term = _by_term(sets, by_set)
    rows = [*((name, points("accuracy", value)) for name, value in by_set.items())]
    console.table(rows, header=("set", "accuracy"))
    console.table([(name, points("accuracy", value)) for name, value in by_term.items()], header=("phenomenon", "accuracy"))
    bounds = interval(credits)
    figures: dict[str, Any] = {"accuracy": average(by_set), "sets": len(by_set), "examples": len(pairs)}
    figures |= {} if bounds is None else {"accuracy_interval": list(bounds)}
    figures |= {"accuracy_by_set": by_set, "accuracy_by_phenomenon": by_term}
    said = [_prediction(pair, *both) for pair, both in zip(pairs, found, strict=True)]
    return probed.finish(console, "blimp", figures, facts={"data": settings.data.folder}, predictions=said)


def _sentences(pairs: Sequence[SentencePair], probed: Probed) -> tuple[list[tuple[int, int]], list[NDArray[np.int32]]]:
    """The different sentences, as ids, and the numbers of each pair's good and bad one: equal ones are scored once."""
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    most = probed.model.config.max_position_embeddings - 2
    known: dict[bytes, int] = {}
    sentences: list[NDArray[np.int32]] = []
    numbers: list[int] = []
    for place, ids in enumerate(probed.wordpiece.encode(texts)):
        if not 0 < len(ids) <= most:
            what = f"has {len(ids):,} tokens, and the model takes {most}" if len(ids) else "has no token"
            raise DataError(f"The sentence {texts[place]!r} {what}.", where=str(pairs[place // 2].place))
        if ids.tobytes() not in known:
            known[ids.tobytes()] = len(sentences)
            sentences.append(ids)
        numbers.append(known[ids.tobytes()])
    return list(zip(numbers[::2], numbers[1::2], strict=True)), sentences


def _scores(sentences: Sequence[NDArray[np.int32]], probed: Probed, console: Console) -> NDArray[np.float64]:
    """The pseudo-log-likelihood of each sentence; on the first process."""
    wordpiece = probed.wordpiece
    copies = MaskedCopies(sentences, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id, mask_id=wordpiece.mask_id)
    everything = [range(len(copies.lengths))]
    scores = probed.outputs(copies.lengths.tolist(), everything, copies.batch, log_likelihoods, console, "Masking each token")
    return copies.summed(scores) if scores else np.zeros(0)


def _say_what_is_there(
    sets: Mapping[str, Sequence[SentencePair]],
    numbers: Sequence[tuple[int, int]],
    sentences: Sequence[NDArray[np.int32]],
    wordpiece: WordPiece,
) -> None:
    if len(sets) < len(SETS):
        say("blimp-sets", f"{len(sets)} of BLiMP's {len(SETS)} sets are here; the average is over those.")
    if same := sum(good == bad for good, bad in numbers):
        say("blimp-ties", f"{same} pairs have both sentences equal for this vocabulary; each counts half.")
    unknown = [bool((ids == wordpiece.unk_id).any()) for ids in sentences]
    if lost := sum(unknown[good] or unknown[bad] for good, bad in numbers):
        say("blimp-unknown", f"{lost} of {len(numbers):,} pairs hold a word that the vocabulary does not know ([UNK]).")


def _by_term(sets: Mapping[str, Sequence[SentencePair]], by_set: Mapping[str, float]) -> dict[str, float]:
    """The average over the sets of each phenomenon."""
    terms: dict[str, dict[str, float]] = {}
    for name, pairs in sets.items():
        terms.setdefault(pairs[0].term, {})[name] = by_set[name]
    return {term: average(found) for term, found in sorted(terms.items())}


def _prediction(pair: SentencePair, good: float, bad: float) -> Prediction:
    likelier = "good" if good > bad else "bad" if bad > good else "tie"
    more = {"set": pair.set, "phenomenon": pair.term, "credit": credit(good, bad), "good": good, "bad": bad}
    return Prediction(id=pair.id, value=likelier, score=good - bad, gold="good", more=more)
