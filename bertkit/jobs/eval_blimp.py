"""``bertkit eval blimp``: of two sentences, is the grammatical one the likelier to a pretrained model?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError
from bertkit.jobs.comparing import comparison_verdict
from bertkit.jobs.console import Console, points
from bertkit.jobs.given import file_of, in_order, refuse_others, tell_other_texts
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.probe import Probed, open_probed
from bertkit.jobs.start import Machine
from bertkit.jobs.verdict import Verdict
from bertkit.labelled.blimp import SETS, SentencePair, read_blimp
from bertkit.labelled.rows import texts_fingerprint
from bertkit.metrics.comparison import compare
from bertkit.metrics.minimal_pairs import accuracies, average, credit, resampled
from bertkit.notices import say
from bertkit.settings.probes import BlimpSettings
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import read_predictions
from bertkit.tasks.pseudo_likelihood import MaskedCopies, log_likelihoods

NAME = "blimp"
_SHOWN = 60  # characters of a sentence in an error
_CREDITS = {"good": 1.0, "tie": 0.5, "bad": 0.0}
Credits = dict[str, list[float]]


def eval_blimp(settings: BlimpSettings, machine: Machine, console: Console) -> tuple[Outcome, list[Verdict]]:
    """Scores a pretrained model on BLiMP and leaves ``evals/blimp/`` in its folder; what is compared with is read beforehand.

    Returns:
        The outcome, and the verdict of the comparison that was asked for, if one was.

    Raises:
        UsageError: A file is none of BLiMP's (exit 2).
        DataError: A file holds something else, a sentence is longer than the model's positions, or what is compared with is of
            other pairs (exit 3).
        ModelError: The model has no masked-LM head (exit 3).
        MissingError: No model, data or predictions to compare with (exit 4).
    """
    sets = machine.peers.main_only(lambda: read_blimp(Path(settings.data.folder), limit=settings.data.max_eval_samples))
    pairs = [pair for found in sets.values() for pair in found]
    theirs = machine.peers.main_only(lambda: _credits_of(settings.gates.not_worse_than, pairs, str(settings.data.folder)))
    probed = open_probed(settings, machine, NAME, pairs=False)
    numbers, sentences = _sentences(pairs, probed)
    scores = _scores(sentences, probed, console)
    if not machine.peers.main:
        return Outcome(), []
    _say_what_is_there(sets, numbers, sentences, probed.wordpiece)
    found = [(float(scores[good]), float(scores[bad])) for good, bad in numbers]
    credits = _by_set(pairs, [credit(*both) for both in found])
    by_set = accuracies(credits)
    by_term = _by_term(sets, by_set)
    rows = [*((name, points("accuracy", value)) for name, value in by_set.items())]
    console.table(rows, header=("set", "accuracy"))
    console.table([(name, points("accuracy", value)) for name, value in by_term.items()], header=("phenomenon", "accuracy"))
    ours = resampled(credits)
    bounds = ours.interval()
    figures: dict[str, Any] = {"accuracy": average(by_set), "sets": len(by_set), "examples": len(pairs)}
    figures |= {} if bounds is None else {"accuracy_interval": list(bounds)}
    figures |= {"accuracy_by_set": by_set, "accuracy_by_phenomenon": by_term}
    facts = {"data": settings.data.folder, "texts": texts_fingerprint(pairs)}
    said = [_prediction(pair, *both) for pair, both in zip(pairs, found, strict=True)]
    outcome = probed.finish(console, NAME, figures, facts=facts, predictions=said)
    if theirs is None:
        return outcome, []
    compared = compare(ours, resampled(theirs), margin=settings.gates.margin / 100)
    return outcome, [comparison_verdict(compared, settings.gates, metric="accuracy", part=NAME, by=100)]


def _by_set(pairs: Sequence[SentencePair], values: Sequence[float]) -> Credits:
    found: Credits = {}
    for pair, value in zip(pairs, values, strict=True):
        found.setdefault(pair.set, []).append(value)
    return found


def _credits_of(than: str | None, pairs: Sequence[SentencePair], source: str) -> Credits | None:
    """What another model got for the same pairs, by set; None where none is named."""
    if than is None:
        return None
    path = file_of(than, NAME, hint=f"`bertkit eval {NAME} --data FOLDER --model {than}` leaves them in a run.")
    said, ids = read_predictions(path), [pair.id for pair in pairs]
    refuse_others(said, ids, path, NAME)
    tell_other_texts(path, pairs, source)
    ordered = in_order(said, ids, path)
    if strange := next((one for one in ordered if str(one.value) not in _CREDITS), None):
        raise DataError(
            f"The prediction of {strange.id!r} is {strange.value!r}, which is none of {', '.join(_CREDITS)}.", where=str(path)
        )
    return _by_set(pairs, [_CREDITS[one.value] for one in ordered])


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
            shown = texts[place] if len(texts[place]) <= _SHOWN else f"{texts[place][:_SHOWN]}…"
            raise DataError(f"The sentence {shown!r} {what}.", where=str(pairs[place // 2].place))
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
