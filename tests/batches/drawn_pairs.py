"""Pairs drawn from a store, and what may be seen of them."""

from __future__ import annotations

import numpy as np

from bertkit.batches.examples import ExampleSettings, draw_examples
from bertkit.batches.text import Text, VocabularyFacts


def examples_of(store, facts, settings, *, seed=1, epoch=0, without=None):
    """The examples of one epoch, end to end."""
    return np.concatenate(list(draw_examples(store, facts, settings, seed=seed, epoch=epoch, without=without)))


def drawn(store, vocabulary, length=128, *, epochs=1, seed=1, **settings):
    """Examples of some epochs, end to end, with int64 lengths."""
    facts = VocabularyFacts.of(vocabulary)
    chosen = ExampleSettings(max_length=length, **settings)
    examples = np.concatenate([examples_of(store, facts, chosen, seed=seed, epoch=epoch) for epoch in range(epochs)])
    a, b, n, m = (examples[name].astype(np.int64) for name in ("a", "b", "a_length", "b_length"))
    return Text.of(store, facts.continues, chosen.room), a, n, b, m, examples["label"].astype(np.int64)


def uncovered(store, places, lengths):
    """Which tokens of the store no span covers."""
    depth = np.zeros(len(store.ids) + 1, dtype=np.int64)
    np.add.at(depth, places, 1)
    np.add.at(depth, places + lengths, -1)
    return np.flatnonzero(np.cumsum(depth[:-1]) == 0)


def area_under_the_curve(scores, labels):
    """Mann-Whitney's U over the pairs, ties half; and its standard deviation under no difference."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    ones, zeros = int(labels.sum()), int((1 - labels).sum())
    area = (ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros)
    return area, np.sqrt((ones + zeros + 1) / (12 * ones * zeros))


def given_away(text, a, n, b, m, label):
    """The area under the curve of a boosted classifier that sees lengths, position and borders, fitted on one half."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    borders = [text.kind(place) == 0 for place in (a, a + n, b, b + m)]
    seen = np.stack([n, m, n + m, np.arange(len(n)) % 256, *borders], axis=1).astype(float)
    model = HistGradientBoostingClassifier(random_state=0).fit(seen[::2], label[::2])
    return area_under_the_curve(model.predict_proba(seen[1::2])[:, 1], label[1::2])
