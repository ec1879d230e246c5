"""``bertkit quickstart``: the main job from a text to a scored task, on this machine alone, in some minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bertkit.errors import FolderError
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import evaluate
from bertkit.jobs.fill_mask import masks_of
from bertkit.jobs.finetune import finetune
from bertkit.jobs.finetuning import write_model
from bertkit.jobs.models import config_of, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.predict import predict
from bertkit.jobs.pretrain import pretrain
from bertkit.jobs.quickstart_text import corpus_text, distinct, documents_of, python_topics, write_corpus, write_task
from bertkit.jobs.start import Machine
from bertkit.labelled.columns import Columns
from bertkit.labelled.tables import read_table
from bertkit.notices import say
from bertkit.settings.commands import (
    EvalSettings,
    FinetuneSettings,
    PredictSettings,
    PretrainSettings,
    eval_settings,
    finetune_settings,
    predict_settings,
)
from bertkit.settings.layers import nest
from bertkit.settings.tools import QuickstartSettings
from bertkit.tasks.models import build_model
from bertkit.training.device import DeviceSettings

STEPS = 1500
EPOCHS = 6.0
MASKED = (
    "the [MASK] is called with the argument .",
    "if the value is not [MASK] , an error is raised .",
    "a class [MASK] has methods .",
)


def quickstart(settings: QuickstartSettings, console: Console) -> Outcome:
    """Trains a vocabulary and a tiny BERT on a text, fills masks, fine-tunes, scores and predicts; says where everything lies.

    The task is made of the same text: which of its 8 longest documents a sentence is from. Three accuracies are told: of
    always naming the commonest document, of the same fine-tuning from an untrained body, and of the pretrained one.

    Raises:
        DataError: The text has fewer than 9 documents (exit 3).
        FolderError: The output holds other files (exit 2).
    """
    documents = distinct(documents_of(Path(settings.text)) if settings.text is not None else python_topics())
    root = _root(settings, corpus_text(documents))
    text = root / "text"
    majority = write_task(documents, text / "train.csv", text / "validation.csv")
    write_corpus(documents, text / "corpus.txt")
    steps = _Steps(settings, console, root, text)

    console.say("\n1. Pretraining a tiny BERT on the text")
    pretrained = steps.pretrain("pretrained", STEPS)
    console.say("\n2. Filling masks")
    for sentence, filled in zip(MASKED, masks_of(str(pretrained), MASKED, machine=steps.machine), strict=True):
        console.say(f"  {sentence}   {', '.join(f'{word} {100 * share:.0f}%' for word, share in filled[0][:4])}")
    console.say("\n3. Fine-tuning it: which document is a sentence from?")
    tuned = steps.finetune("classifier", pretrained)
    console.say("\n4. The same fine-tuning of an untrained body, to compare")
    untrained = steps.finetune("untrained-classifier", steps.untrained(pretrained))
    console.say("\n5. Evaluating the saved models")
    scores = {name: steps.evaluate(folder) for name, folder in (("pretrained", tuned), ("untrained", untrained))}
    console.say("\n6. Predicting two sentences")
    predictions = steps.predict(tuned)
    metrics = {
        "accuracy": scores["pretrained"],
        "untrained_accuracy": scores["untrained"],
        "majority_accuracy": majority,
    }
    console.result("\nAccuracy on sentences that training never saw:")
    console.result(f"  always the commonest document   {100 * majority:5.1f}")
    console.result(f"  fine-tuned from nothing         {100 * scores['untrained']:5.1f}")
    console.result(f"  fine-tuned from the pretrained  {100 * scores['pretrained']:5.1f}")
    console.result("\nWhere everything lies:")
    for name, what in (
        ("text", "the corpus and the task's files"),
        ("pretrained", "the BERT: bertkit fill-mask, or transformers' from_pretrained"),
        ("classifier", "the classifier, its figures and its log"),
    ):
        console.result(f"  {root / name}  {what}")
    console.result(f"  {predictions}  the predictions")
    return Outcome(output=root, metrics=metrics)


def _root(settings: QuickstartSettings, corpus: str) -> Path:
    """The folder that is named; else ``runs/quickstart``, or the next one where that holds something else, which is said.

    Raises:
        FolderError: The one that is named holds other files, or a quickstart on another text (exit 2).
    """
    path = Path(settings.output) if settings.output is not None else Path("runs") / "quickstart"
    for number in range(1, 1000):
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        refusal = _refusal(candidate, corpus, overwrite=settings.overwrite)
        if refusal is None:
            if number > 1:
                say("output", f"{path} holds something else, so this quickstart goes to {candidate}.")
            return candidate
        if settings.output is not None:
            raise refusal
    raise FolderError(f"There are a thousand folders beside {path}.", hint="Name one with --output.")


def _refusal(root: Path, corpus: str, *, overwrite: bool) -> FolderError | None:
    if not root.exists():
        return None
    if not (root.is_dir() and ((root / "text").is_dir() or not any(root.iterdir()))):
        return FolderError("This folder has files that are no quickstart.", where=str(root), hint="Choose another --output.")
    before = root / "text" / "corpus.txt"
    if overwrite or not before.exists() or before.read_bytes() == corpus.encode():
        return None
    return FolderError(
        "This folder is a quickstart on another text.",
        where=str(root),
        hint="Choose another --output, or start anew here with --overwrite.",
    )


class _Steps:
    """The commands of the quickstart, as one would type them."""

    def __init__(self, settings: QuickstartSettings, console: Console, root: Path, text: Path) -> None:
        self.settings, self.console, self.root, self.text = settings, console, root, text
        self.machine = Machine.of(DeviceSettings(device=settings.device, precision="fp32"))

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "output": str(self.root / name),
            "overwrite": self.settings.overwrite,
            "device.precision": "fp32",
            "device.device": self.settings.device,
            "run.seed": self.settings.seed,
        }

    def pretrain(self, name: str, steps: int) -> Path:
        """A tiny BERT on the text."""
        values = self._common(name) | {
            "inputs.corpus": (str(self.text / "corpus.txt"),),
            "model.size": "tiny",
            "optimizer.name": "adamw",
            "optimizer.learning_rate": 2e-3,
            "batch.size": 32,
            "budget.steps": steps,
        }
        outcome = pretrain(PretrainSettings.model_validate(nest(values)), self.console)
        assert outcome.output is not None
        return outcome.output

    def untrained(self, like: Path) -> Path:
        """A body of the same shape and vocabulary with the weights that it was born with."""
        folder = self.root / "untrained"
        folder.mkdir(exist_ok=True)
        write_model(build_model("encoder", config_of(like), seed=self.settings.seed), tokenizer_of(like), folder)
        return folder

    def finetune(self, name: str, model: Path) -> Path:
        """The classifier."""
        values = self._common(name) | {
            "task": "classification",
            "model": str(model),
            "data.folder": str(self.text),
            "budget.epochs": EPOCHS,
        }
        made: type[FinetuneSettings] = finetune_settings("classification")
        outcome = finetune(made.model_validate(nest(values)), self.console)
        assert outcome.output is not None
        return outcome.output

    def evaluate(self, model: Path) -> float:
        """Its accuracy on the held-out sentences, as ``bertkit eval`` says it."""
        made: type[EvalSettings] = eval_settings("classification")
        values = {"task": "classification", "model": str(model), "data.folder": str(self.text), "device.precision": "fp32"}
        outcome = evaluate(made.model_validate(nest(values)), self.console)
        return float(outcome.metrics["accuracy"])

    def predict(self, model: Path) -> Path:
        """Two sentences of the held-out file, through ``bertkit predict``."""
        rows, _ = read_table(self.text / "validation.csv", Columns(text="text", label="label"))
        file, output = self.root / "sentences.csv", self.root / "predictions.jsonl"
        chosen = [rows[0], rows[-1]]
        file.write_text("text\n" + "".join(f'"{row.text.replace(chr(34), chr(34) * 2)}"\n' for row in chosen), encoding="utf-8")
        made: type[PredictSettings] = predict_settings("classification")
        values = {
            "task": "classification",
            "model": str(model),
            "data.test_file": str(file),
            "output": str(output),
            "device.precision": "fp32",
        }
        predict(made.model_validate(nest(values)), self.console)
        for row, line in zip(chosen, output.read_text(encoding="utf-8").splitlines(), strict=True):
            said = json.loads(line)
            self.console.say(f"  {row.text[:80]!r}: {said['prediction']} ({100 * said['score']:.0f}%), it is {row.label}")
        return output
