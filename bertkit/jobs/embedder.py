"""Texts in, their vectors out, window by window and in order: what ``bertkit embed`` and ``bertkit.embed`` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertkit.batches.labelled import batches_by_tokens
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import UsageError
from bertkit.jobs.models import model_folder, tokenizer_of
from bertkit.jobs.start import Machine
from bertkit.model.pooling import cut_layers, normalized, text_vectors, token_vectors
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.settings.embedding import EmbedSettings
from bertkit.tasks.models import TaskModel, load_model
from bertkit.training.evaluation import evaluating

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
_TEXTS = 4096  # of a window: sorted by length together
_CHARACTERS = {False: 1 << 20, True: 1 << 16}  # of a window, its last text apart; a vector a token takes more room


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some texts, one behind the other, with their vectors.

    Attributes:
        first: The number of the first text, from 0.
        texts: n of them.
        vectors: ``[n, H]``, or with one a token ``[sum of counts, H]``, special tokens left out.
        counts: ``[n]`` tokens of each text that vectors are of, special ones left out.
        ids: With one a token: ``[sum of counts]``, its id.
        offsets: With one a token: ``[sum of counts, 2]``, its first character in its text and the one behind its last.
    """

    first: int
    texts: list[str]
    vectors: Floats
    counts: Ints
    ids: Ints
    offsets: Ints


@dataclass(slots=True, kw_only=True)
class Embedder:
    """A model that turns texts into vectors.

    Attributes:
        model: On its device, cut behind the layer that is asked for.
        wordpiece: Its vocabulary.
        machine: Where it runs.
        settings: The command's.
        longest: Tokens of a text at most, special ones included.
        texts: Texts so far. ``tokens``: their tokens, ``empty``: those without one, ``cut``: those that were too long.
    """

    model: TaskModel
    wordpiece: WordPiece
    machine: Machine
    settings: EmbedSettings
    longest: int
    texts: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    empty: int = field(default=0, init=False)
    cut: int = field(default=0, init=False)

    @staticmethod
    def of(settings: EmbedSettings) -> Embedder:
        """The model that is named.

        Raises:
            MissingError: There is no such model (exit 4).
            ModelError: The folder holds no BERT (exit 3).
            UsageError: There is no such layer, or more positions are asked for than there are (exit 2).
        """
        machine = Machine.of(settings.device)
        if machine.peers.world > 1:
            raise UsageError("Vectors are made by one process.", where="bertkit embed", hint="Start it without a launcher.")
        folder = model_folder(settings.model)
        wordpiece = tokenizer_of(folder, cased=settings.cased)
        model, _ = load_model(folder, "encoder")
        positions = model.config.max_position_embeddings
        if settings.max_length is not None and settings.max_length > positions:
            raise UsageError(
                f"max_length is {settings.max_length}, and the model has {positions} positions.",
                where="--max-length",
                hint="Give a smaller one.",
            )
        cut_layers(model.encoder, settings.layer)
        return Embedder(
            model=model.to(machine.device),
            wordpiece=wordpiece,
            machine=machine,
            settings=settings,
            longest=settings.max_length or positions,
        )

    @property
    def width(self) -> int:
        """H."""
        return self.model.config.hidden_size

    def windows(self, texts: Iterable[str]) -> Iterator[Window]:
        """The vectors of all texts in their order; a window of them is in memory."""
        waiting: list[str] = []
        characters = 0
        for text in texts:
            waiting.append(text)
            characters += len(text)
            if len(waiting) == _TEXTS or characters >= _CHARACTERS[self.settings.tokens]:
                yield self._window(waiting)
                waiting, characters = [], 0
        if waiting:
            yield self._window(waiting)

    def tell(self) -> None:
        """Says what was cut and what was empty."""
        if self.cut:
            say(
                "cut-texts",
                f"{self.cut:,} of {self.texts:,} texts are longer than {self.longest} tokens; what lies behind is in no vector.",
            )
        if self.empty:
            what = "have no vector" if self.settings.tokens else "have the vector of [CLS] [SEP] alone"
            say("empty-texts", f"{self.empty:,} of {self.texts:,} texts have nothing that the tokenizer sees; they {what}.")

    def _window(self, texts: list[str]) -> Window:
        if self.settings.tokens:
            encoded = self.wordpiece.encode_with_offsets(texts)
        else:
            encoded = [(ids, np.zeros((0, 2), dtype=np.int32)) for ids in self.wordpiece.encode(texts)]
        most = self.longest - 2
        sizes = np.array([len(ids) for ids, _ in encoded])
        kept = [ids[:most] for ids, _ in encoded]
        counts = np.minimum(sizes, most).astype(np.int32)
        first, self.texts = self.texts, self.texts + len(texts)
        self.tokens += int(counts.sum())
        self.empty += int((sizes == 0).sum())
        self.cut += int((sizes > most).sum())
        return Window(
            first=first,
            texts=texts,
            vectors=self._vectors(kept, counts),
            counts=counts,
            ids=np.concatenate(kept),
            offsets=np.concatenate([offsets[:most] for _, offsets in encoded]),
        )

    def _vectors(self, ids: list[Ints], counts: Ints) -> Floats:
        batch, tokens = self.settings.batch, self.settings.tokens
        ends = np.cumsum(counts)
        made = np.empty((int(ends[-1]) if tokens else len(ids), self.width), dtype=np.float32)
        plan = batches_by_tokens((counts + 2).tolist(), batch.micro_tokens or 2 * self.machine.micro_tokens, window=len(ids) + 1)
        step = batch.size or len(ids)
        with evaluating(self.model, self.machine.accelerator):
            for numbers in (part[start : start + step] for part in plan for start in range(0, len(part), step)):
                packed = self._packed([ids[number] for number in numbers]).to(self.machine.device)
                vectors = self._batch(packed)
                if not tokens:
                    made[numbers] = vectors.cpu().numpy()
                    continue
                for number, part in zip(numbers, torch.split(vectors, packed.boundaries.diff().tolist()), strict=True):
                    made[ends[number] - counts[number] : ends[number]] = part[1:-1].cpu().numpy()
        return made

    def _batch(self, packed: PackedSequences) -> Tensor:
        settings, encoder = self.settings, self.model.encoder
        vectors = token_vectors(encoder, packed) if settings.tokens else text_vectors(encoder, packed, settings.pooling)
        return normalized(vectors) if settings.normalize else vectors

    def _packed(self, texts: list[Ints]) -> PackedSequences:
        cls_id, sep_id = self.wordpiece.cls_id, self.wordpiece.sep_id
        ids = torch.from_numpy(np.concatenate([part for text in texts for part in ([cls_id], text, [sep_id])]).astype(np.int64))
        lengths = torch.tensor([len(text) + 2 for text in texts])
        return PackedSequences.from_lengths(ids, torch.zeros_like(ids), lengths)
