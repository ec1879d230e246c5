"""The collator in another's loop: transformers.Trainer with BertForPreTraining."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.batches.collator import PretrainingCollator
from bertkit.batches.examples import ExampleSettings
from bertkit.batches.pretraining import PretrainingExamples


def test_examples_are_a_map_style_dataset(prose, vocabulary):
    store = prose(20)
    pairs = PretrainingExamples(store, vocabulary, ExampleSettings(max_length=64))
    assert len(pairs) > 20
    item = pairs[3]
    assert set(item) == {"a", "b", "next_sentence_label"}
    assert len(item["a"]) + len(item["b"]) <= 61
    batch = PretrainingCollator(vocabulary)([pairs[index] for index in range(4)])
    assert {name: tuple(value.shape)[:1] for name, value in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "token_type_ids", "labels", "next_sentence_label"), (4,)
    )
    runs = PretrainingExamples(store, vocabulary, ExampleSettings(max_length=64, objective="mlm"))
    assert "next_sentence_label" not in PretrainingCollator(vocabulary)([runs[0], runs[1]])


@pytest.mark.slow
def test_trainer_learns_with_it(make_store, vocabulary, tmp_path):
    from transformers import BertConfig, BertForPreTraining, Trainer, TrainingArguments

    rng = np.random.default_rng(0)
    # Each document speaks of ten words of its own: the masked are learned from their neighbours.
    store = make_store([[(rng.integers(0, 10, 12) + 10 * (5 + d % 20)).tolist() for _ in range(6)] for d in range(60)])
    model = BertForPreTraining(
        BertConfig(vocab_size=400, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    )
    arguments = TrainingArguments(
        str(tmp_path),
        max_steps=60,
        per_device_train_batch_size=16,
        learning_rate=5e-3,
        logging_steps=10,
        report_to=[],
        save_strategy="no",
        remove_unused_columns=False,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=PretrainingExamples(store, vocabulary, ExampleSettings(max_length=64)),
        data_collator=PretrainingCollator(vocabulary),
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 6
    assert losses[-1] < losses[0] - 0.5, losses
