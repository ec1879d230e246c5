"""bertkit: from a text file to a BERT, and from a BERT to a scored task.

The names of ``__all__`` are the public interface. Each is loaded when it is first asked for, so ``import bertkit`` is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bertkit.batches.collator import PretrainingCollator
    from bertkit.batches.pretraining import PretrainingExamples
    from bertkit.corpus.store import TokenStore
    from bertkit.corpus.wordpiece import load_wordpiece
    from bertkit.errors import BertkitError
    from bertkit.jobs.library import embed, evaluate, finetune, load_encoder, predict, pretrain
    from bertkit.jobs.outcome import Outcome
    from bertkit.packed import PackedSequences

__all__ = [
    "BertkitError",
    "Outcome",
    "PackedSequences",
    "PretrainingCollator",
    "PretrainingExamples",
    "TokenStore",
    "embed",
    "evaluate",
    "finetune",
    "load_encoder",
    "load_wordpiece",
    "predict",
    "pretrain",
]
_WHERE = {
    "BertkitError": "errors",
    "Outcome": "jobs.outcome",
    "PackedSequences": "packed",
    "PretrainingCollator": "batches.collator",
    "PretrainingExamples": "batches.pretraining",
    "TokenStore": "corpus.store",
    "embed": "jobs.library",
    "evaluate": "jobs.library",
    "finetune": "jobs.library",
    "load_encoder": "jobs.library",
    "load_wordpiece": "corpus.wordpiece",
    "predict": "jobs.library",
    "pretrain": "jobs.library",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
