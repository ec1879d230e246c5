"""Text in, WordPiece ids out: exactly BERT's, with special tokens split like any other word.

The tokenizers library does the work (normalizer, pre-tokenizer, longest match first); no special token is added to it,
so text that spells ``[SEP]`` is the pieces ``[``, ``sep``, ``]``. Special tokens are put in by whoever builds examples.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from bertkit.corpus.bulk import BulkEncoder, Encoded
from bertkit.corpus.characters import HAN
from bertkit.corpus.pieces import Ids
from bertkit.corpus.tokenizer_files import tokenizer_config_json, tokenizer_json
from bertkit.corpus.vocabulary import MAX_WORD, SPECIALS, Flags, read_vocabulary
from bertkit.errors import ModelError

WORDPIECE_VERSION = 1
"""Raised whenever the same vocabulary, flags and text would give other ids: stores of before are then built anew."""

_UNUSED = re.compile(r"\[unused\d+\]")


class WordPiece:
    """A BERT tokenizer.

    Attributes:
        vocabulary: ``[V]`` tokens; index = id = line of vocab.txt, blank and repeated lines included.
        lowercase: Texts are lowercased.
        strip_accents: Accents are stripped; None: as ``lowercase``.
        tokenize_chinese_chars: Each Chinese character is a word.

    Raises:
        ModelError: ``[PAD]``, ``[UNK]``, ``[CLS]`` or ``[SEP]`` is missing; ``[MASK]`` may be until it is used.
    """

    def __init__(self, vocabulary: Sequence[str], flags: Flags, *, raw: bytes | None = None, where: str = "vocab.txt") -> None:
        self.vocabulary = tuple(vocabulary)
        self.flags = flags
        self.lowercase, self.strip_accents, self.tokenize_chinese_chars = (
            flags.lowercase,
            flags.strip_accents,
            flags.tokenize_chinese_chars,
        )
        self.size = len(self.vocabulary)
        self._where = where
        self._raw = raw if raw is not None else "".join(f"{token}\n" for token in self.vocabulary).encode()
        self._ids = {token: i for i, token in enumerate(self.vocabulary) if token}
        for token in SPECIALS[:4]:
            if token not in self._ids:
                raise missing_special(token, self.vocabulary, where)

    def __repr__(self) -> str:
        return f"WordPiece({self.size:,} tokens, {'un' if self.lowercase else ''}cased)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.vocabulary, self.flags, self._raw, self._where))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordPiece) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer(
            models.WordPiece(self._ids, unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=MAX_WORD)
        )
        tokenizer.normalizer = bert_normalizer(self.flags)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
        return tokenizer

    @cached_property
    def _bulk(self) -> BulkEncoder:
        return BulkEncoder(self._tokenizer, self._ids, self.size, self.unk_id, self.flags)

    @property
    def pad_id(self) -> int:
        """The id of ``[PAD]``."""
        return self._ids["[PAD]"]

    @property
    def unk_id(self) -> int:
        """The id of ``[UNK]``."""
        return self._ids["[UNK]"]

    @property
    def cls_id(self) -> int:
        """The id of ``[CLS]``."""
        return self._ids["[CLS]"]

    @property
    def sep_id(self) -> int:
        """The id of ``[SEP]``."""
        return self._ids["[SEP]"]

    @property
    def mask_id(self) -> int:
        """The id of ``[MASK]``; ModelError where the vocabulary has none."""
        if "[MASK]" not in self._ids:
            raise missing_special("[MASK]", self.vocabulary, self._where)
        return self._ids["[MASK]"]

    def token_id(self, token: str) -> int | None:
        """The id of a token spelt exactly so, special or not; None where the vocabulary lacks it."""
        return self._ids.get(token)

    @cached_property
    def continues(self) -> NDArray[np.bool_]:
        """``[V]`` bool: the piece goes on with a word (it begins with ``##``)."""
        return np.array([token.startswith("##") for token in self.vocabulary], dtype=np.bool_)

    @cached_property
    def chinese(self) -> NDArray[np.bool_]:
        """``[V]`` bool: the piece is one Chinese character (U+4E00–U+9FFF)."""
        return np.array([len(token) == 1 and ord(token) in HAN for token in self.vocabulary], dtype=np.bool_)

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """``[V]`` bool: one of the five special tokens."""
        out = np.zeros(self.size, dtype=np.bool_)
        out[[self._ids[token] for token in SPECIALS if token in self._ids]] = True
        return out

    @cached_property
    def replaceable(self) -> NDArray[np.int64]:
        """Ids that may stand in for a masked token: not special, not ``[unusedN]``, not a line that no text can give."""
        kept = [
            i
            for i, token in enumerate(self.vocabulary)
            if token and self._ids[token] == i and token not in SPECIALS and not _UNUSED.fullmatch(token)
        ]
        return np.array(kept, dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the vocabulary and the flags: whether two tokenizers give the same ids."""
        digest = hashlib.sha256(f"wordpiece {WORDPIECE_VERSION} {self.flags}\n".encode())
        digest.update("\n".join(self.vocabulary).encode())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each text, ``[n]`` int32, without any special token; a text of nothing visible gives none."""
        encoded = self.encode_flat(texts)
        ends = encoded.ends.tolist()
        return [encoded.ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def encode_flat(self, texts: Sequence[str], *, chinese: bool = False) -> Encoded:
        """The ids of all texts end to end, without any special token.

        Args:
            texts: Any text; one of nothing visible gives no id.
            chinese: Also mark the tokens that are one Chinese character.
        """
        return self._bulk.encode(texts, chinese=chinese)

    def encode_with_offsets(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """For each text its ids ``[n]`` and the characters of the raw text that each covers, ``[n, 2]`` (start, end), int32."""
        out = []
        for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
            out.append((np.array(encoding.ids, dtype=np.int32), offsets))
        return out

    def encode_words(self, words: Sequence[str]) -> list[Ids]:
        """The ids of each word on its own; a word that the tokenizer deletes gives an empty array."""
        return self.encode(words)

    def words_of(self, text: str) -> list[str]:
        """The words that the vocabulary is asked for: the text cleaned, in its case, parted at spaces and punctuation."""
        parts = self._tokenizer.pre_tokenizer.pre_tokenize_str(self._tokenizer.normalizer.normalize_str(text))
        return [word for word, _ in parts]

    def encode_masked(self, text: str) -> Ids:
        """The ids of a text in which ``[MASK]``, spelt so, is the special token; any other is text."""
        parts = self.encode(text.split("[MASK]"))
        mask = np.array([self.mask_id] if len(parts) > 1 else [], dtype=np.int32)
        joined = [parts[0]]
        for part in parts[1:]:
            joined += [mask, part]
        return np.concatenate(joined)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """A readable text of ids: pieces joined, spaces before punctuation taken back."""
        tokens = [self.vocabulary[int(i)] for i in ids]
        return str(self._tokenizer.decoder.decode(tokens)) if tokens else ""

    def to_tokenizer_json(self) -> str:
        """The text of a tokenizer.json which transformers and the tokenizers library read to the same ids."""
        return tokenizer_json(self.vocabulary, self.flags)

    def save(self, folder: Path, *, max_length: int) -> None:
        """Writes vocab.txt (the bytes that were read), tokenizer.json and tokenizer_config.json.

        Args:
            folder: Made where it is not there.
            max_length: The model's positions: ``model_max_length``, at which pipelines cut.
        """
        self.save_vocabulary(folder)
        (folder / "tokenizer.json").write_bytes(self.to_tokenizer_json().encode())
        (folder / "tokenizer_config.json").write_bytes(tokenizer_config_json(self.flags, max_length).encode())

    def save_vocabulary(self, folder: Path) -> None:
        """Writes vocab.txt alone, the bytes that were read; the folder is made where it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.txt").write_bytes(self._raw)


def _rebuild(vocabulary: tuple[str, ...], flags: Flags, raw: bytes, where: str) -> WordPiece:
    return WordPiece(vocabulary, flags, raw=raw, where=where)


def bert_normalizer(flags: Flags) -> Any:
    """BERT's cleaning of characters, as the tokenizers library does it."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=flags.tokenize_chinese_chars,
        strip_accents=flags.strip_accents,
        lowercase=flags.lowercase,
    )


def missing_special(token: str, vocabulary: Sequence[str], where: str) -> ModelError:
    """The error for a special token that the vocabulary lacks, naming what stands in its place by another name."""
    bare = token.strip("[]").lower()
    alike = [t for t in vocabulary if t != token and t.lower().strip("[]<>|") == bare and not t.isalnum()]
    known = f" It has {alike[0]!r}, which is not BERT's name for it." if alike else ""
    return ModelError(
        f"The vocabulary has no {token}.{known}",
        where=where,
        hint="Use a BERT vocabulary, or train one: bertkit tokenizer train.",
    )


def check_specials(wordpiece: WordPiece, *, pad_token_id: int | None = None) -> None:
    """What pretraining needs of a vocabulary, checked before any work.

    Args:
        wordpiece: The tokenizer (its making has checked ``[PAD]``, ``[UNK]``, ``[CLS]`` and ``[SEP]``).
        pad_token_id: The one of config.json, where there is one.

    Raises:
        ModelError: ``[MASK]`` is missing, or ``[PAD]`` has another id than the config says.
    """
    _ = wordpiece.mask_id
    if pad_token_id is not None and pad_token_id != wordpiece.pad_id:
        raise ModelError(
            f"[PAD] has id {wordpiece.pad_id} in the vocabulary, but config.json says pad_token_id {pad_token_id}.",
            where=f"{wordpiece._where}, config.json pad_token_id",
            hint=f"Set pad_token_id to {wordpiece.pad_id} if the vocabulary is the model's own.",
        )


def load_wordpiece(path: Path, *, cased: bool | None = None) -> WordPiece:
    """Reads a vocab.txt, or the tokenizer of a model folder (vocab.txt, tokenizer.json, tokenizer_config.json).

    Args:
        path: The file or the folder.
        cased: Whether case is kept; None takes what the files say.

    Raises:
        MissingError: Nothing is there.
        ModelError: A file is damaged, is no BERT tokenizer's, or lacks a special token.
        UsageError: Nothing says whether the vocabulary is cased, and it has capitals.
    """
    tokens, raw, flags = read_vocabulary(path, cased=cased)
    return WordPiece(tokens, flags, raw=raw, where=str(path))
