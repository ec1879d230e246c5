"""The flags that both trainings have -> their settings' keys: one table instead of two."""

from __future__ import annotations

from typing import Any

# Function argument -> (settings key, flag); ``a/b`` marks a flag whose no is a value.
TRAINING = {
    "output": ("output", "--output"),
    "overwrite": ("overwrite", "--overwrite"),
    "learning_rate": ("optimizer.learning_rate", "--lr"),
    "warmup": ("schedule.warmup", "--warmup"),
    "batch_size": ("batch.size", "--batch-size"),
    "micro_tokens": ("batch.micro_tokens", "--micro-tokens"),
    "epochs": ("budget.epochs", "--epochs"),
    "steps": ("budget.steps", "--steps"),
    "max_minutes": ("budget.max_minutes", "--max-minutes"),
    "precision": ("device.precision", "--precision"),
    "compile_": ("device.compile", "--compile"),
    "seed": ("run.seed", "--seed"),
    "workers": ("run.workers", "--workers"),
    "log_every": ("run.log_every", "--log-every"),
    "eval_every": ("run.eval_every", "--eval-every"),
    "save_every": ("run.save_every", "--save-every"),
    "keep_checkpoints": ("run.keep_checkpoints", "--keep-checkpoints"),
    "keep_best": ("run.keep_best", "--keep-best/--keep-last"),
    "report_to": ("run.report_to", "--report-to"),
}
DATA = {
    "output": ("output", "--output"),
    "overwrite": ("overwrite", "--overwrite"),
    "task_file": ("task_file", "--task-file"),
    "model": ("model", "--model"),
    "cased": ("cased", "--cased/--uncased"),
    "data": ("data.folder", "--data"),
    "train_file": ("data.train_file", "--train-file"),
    "validation_file": ("data.validation_file", "--validation-file"),
    "test_file": ("data.test_file", "--test-file"),
    "text_column": ("data.text_column", "--text-column"),
    "pair_column": ("data.pair_column", "--pair-column"),
    "label_column": ("data.label_column", "--label-column"),
    "max_train_samples": ("data.max_train_samples", "--max-train-samples"),
    "max_eval_samples": ("data.max_eval_samples", "--max-eval-samples"),
    "strict": ("data.strict", "--strict/--no-strict"),
    "max_length": ("kind.max_length", "--max-length"),
    "stride": ("kind.stride", "--stride"),
    "part": ("part", "--part"),
    "predictions": ("predictions", "--predictions"),
    "metric": ("metrics", "--metric"),
    "batch_size": ("batch.size", "--batch-size"),
    "micro_tokens": ("batch.micro_tokens", "--micro-tokens"),
    "precision": ("device.precision", "--precision"),
}
PRETRAINING = {
    "corpus": ("inputs.corpus", "--corpus"),
    "validation_file": ("inputs.validation", "--validation-file"),
    "documents": ("corpus.documents", "--documents"),
    "encoding_errors": ("corpus.encoding_errors", "--encoding-errors"),
    "words": ("corpus.words", "--words"),
    "dedup": ("corpus.dedup", "--dedup"),
    "text_field": ("corpus.text_field", "--text-field"),
    "tokenizer": ("tokenizer.path", "--tokenizer"),
    "vocab_size": ("tokenizer.vocab_size", "--vocab-size"),
    "cased": ("tokenizer.cased", "--cased/--uncased"),
    "size": ("model.size", "--size"),
    "init_from": ("model.init_from", "--init-from"),
    "add_words": ("model.add_words", "--add-words"),
    "objective": ("examples.objective", "--objective"),
    "max_length": ("examples.max_length", "--max-length"),
    "phases": ("phases", "--phases"),
    "mlm_probability": ("masking.probability", "--mlm-probability"),
    "masking": ("masking.kind", "--masking"),
}


def rows(table: dict[str, tuple[str, str]], arguments: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """``(key, flag, value)`` of those of a function's arguments that ``table`` knows."""
    return [(key, flag, arguments[name]) for name, (key, flag) in table.items() if name in arguments]
