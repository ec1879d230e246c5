"""Masks against a plain rendering of google-research/bert's create_masked_lm_predictions, the same text through both.

Where the two are meant to be alike their statistics are compared with one another; where they are meant to differ (the
count, long words, special tokens among the random ones) the test says how.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from bertkit.batches.collator import PretrainingCollator
from bertkit.batches.masking import MaskingSettings

CLS, SEP, MASK = 2, 3, 4
PIECES = [1, 2, 3, 6]


def google(ids, continues, vocab_size, rng, *, whole_words, share=0.15, most=76):
    """Its places and what stands there afterwards, for one sequence with its special tokens."""
    candidates: list[list[int]] = []
    for place, token in enumerate(ids):
        if token in (CLS, SEP):
            continue
        if whole_words and candidates and continues[token]:
            candidates[-1].append(place)
        else:
            candidates.append([place])
    rng.shuffle(candidates)
    output = list(ids)
    wanted = min(most, max(1, round(len(ids) * share)))
    places: list[int] = []
    for together in candidates:
        if len(places) >= wanted:
            break
        if len(places) + len(together) > wanted:
            continue
        for place in together:
            if rng.random() < 0.8:
                output[place] = MASK
            elif rng.random() >= 0.5:
                output[place] = rng.randrange(vocab_size)
            places.append(place)
    return sorted(places), output


@pytest.fixture(scope="module")
def drawn(vocabulary):
    """1 500 sequences of 124 tokens, and what both make of them: places, replaced ids."""
    rng = random.Random(0)
    sequences, pieces_of = [], []
    for _ in range(1_500):
        sentence: list[int] = []
        sizes: list[int] = []
        while len(sentence) < 124:
            size = min(rng.choices(PIECES, [0.6, 0.2, 0.12, 0.08])[0], 124 - len(sentence))
            sentence += [rng.randrange(5, 300), *rng.choices(range(300, 400), k=size - 1)]
            sizes += [size] * size
        sequences.append(sentence)
        pieces_of.append(sizes)

    def theirs(whole_words):
        out = []
        for sentence in sequences:
            places, output = google([CLS, *sentence, SEP], vocabulary.continues, 400, rng, whole_words=whole_words)
            out.append((np.array(places) - 1, np.array(output)[1:-1]))
        return out

    def ours(kind):
        batch = PretrainingCollator(vocabulary, MaskingSettings(kind=kind), seed=1).packed([{"a": s} for s in sequences])
        owner, place = np.divmod(batch.masked_positions.numpy(), 126)
        ids = batch.packed.input_ids.numpy().reshape(-1, 126)[:, 1:-1]
        return [(place[owner == row] - 1, ids[row]) for row in range(len(sequences))]

    return {
        "text": np.array(sequences),
        "pieces": np.array(pieces_of),
        "token": (ours("token"), theirs(False)),
        "word": (ours("word"), theirs(True)),
    }


def alike(one, of_one, two, of_two, sigmas=3.0):
    """Are two counts those of one and the same share?"""
    share = (one + two) / (of_one + of_two)
    return abs(one / of_one - two / of_two) <= sigmas * (share * (1 - share) * (1 / of_one + 1 / of_two)) ** 0.5


@pytest.mark.parametrize("kind", ["token", "word"])
def test_the_chosen_become_what_they_become_there(drawn, kind):
    counts = []
    for side in drawn[kind]:
        masked = changed = chosen = 0
        for text, (places, output) in zip(drawn["text"], side, strict=True):
            here = output[places]
            masked += int((here == MASK).sum())
            changed += int(((here != MASK) & (here != text[places])).sum())
            chosen += len(places)
            others = np.ones(len(text), dtype=bool)
            others[places] = False
            assert (output[others] == text[others]).all()
        counts.append((masked, changed, chosen))
    (masked, changed, chosen), (their_masked, their_changed, their_chosen) = counts
    assert alike(masked, chosen, their_masked, their_chosen)
    # Theirs may draw a special token, one in 80 of 400; neither that nor hitting the original moves 10 % by a sigma.
    assert alike(changed, chosen, their_changed, their_chosen)
    assert alike(masked, chosen, 8 * 10**9, 10**10)


def test_each_piece_of_a_word_draws_for_itself_there_too(drawn):
    """Both pieces of a word [MASK]: 0.64; one of them: 0.32; drawn for the word as a whole it would be 0.8 and 0."""
    counts = []
    for side in drawn["word"]:
        both = one = words = 0
        for (places, output), pieces in zip(side, drawn["pieces"], strict=True):
            pairs = places[pieces[places] == 2].reshape(-1, 2)  # chosen together, next to one another
            assert (np.diff(pairs) == 1).all()
            seen = (output[pairs] == MASK).sum(1)
            both, one, words = both + int((seen == 2).sum()), one + int((seen == 1).sum()), words + len(pairs)
        assert alike(both, words, 64 * 10**8, 10**10)
        assert alike(one, words, 32 * 10**8, 10**10)
        counts.append((both, words))
    assert alike(*counts[0], *counts[1])


def test_tokens_are_chosen_as_often_as_there_at_each_place(drawn):
    ours, theirs = (np.bincount(np.concatenate([places for places, _ in side]), minlength=124) for side in drawn["token"])
    assert ours.sum() == pytest.approx(1_500 * 0.15 * 124, abs=3 * (1_500 * 0.6 * 0.4) ** 0.5)  # 18.6 of 124
    assert theirs.sum() == 1_500 * 19  # round(0.15 · 126): special tokens counted, the fraction rounded
    chi = ((ours - ours.mean()) ** 2 / (ours.mean() * 0.85)).sum(), ((theirs - theirs.mean()) ** 2 / (theirs.mean() * 0.85)).sum()
    assert all(abs(value - 123) < 4 * (2 * 123) ** 0.5 for value in chi)  # as uniform as independent draws, no less, no more


def test_long_words_are_chosen_as_often_as_others_and_there_less(drawn):
    shares = []
    for side in drawn["word"]:
        hits = sum(np.bincount(pieces[places], minlength=7) for (places, _), pieces in zip(side, drawn["pieces"], strict=True))
        shares.append(hits[PIECES] / np.bincount(drawn["pieces"].ravel(), minlength=7)[PIECES])
    words = np.bincount(drawn["pieces"].ravel(), minlength=7)[PIECES] / PIECES
    ours, theirs = shares
    sigma = (0.15 * 0.85 / words) ** 0.5
    assert (abs(ours - 0.15) < 4 * sigma).all()
    # There a word that would pass the count is left out, so the room at the end goes to short words.
    assert theirs[-1] < 0.15 - 4 * sigma[-1]
    assert theirs[0] > 0.15 + 4 * sigma[0]
