"""The commands as functions, for notebooks and scripts: what ``import bertkit`` offers, with the command line's own settings.

What has a name of its own here (a corpus, a task, a model, data, an output) is an argument; every other setting goes into
``settings`` under the dotted name that ``--set`` has, ``{"optimizer.learning_rate": 1e-4, "budget.steps": 500}``. What a
command says goes to stderr; figures, paths and warnings come back in an :class:`~bertkit.jobs.outcome.Outcome`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import DataError, SettingsError
from bertkit.jobs import evaluate as evaluating
from bertkit.jobs import finetune as tuning
from bertkit.jobs import predict as predicting
from bertkit.jobs import pretrain as training
from bertkit.jobs.called import Place, Values, arguments, checked, heard, of_task
from bertkit.jobs.console import Console
from bertkit.jobs.embedder import Embedder
from bertkit.jobs.models import model_folder
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.probes import run_probe
from bertkit.jobs.start import Machine
from bertkit.labelled.files import no_character
from bertkit.model.encoder import Encoder
from bertkit.settings.commands import (
    PretrainSettings,
    eval_settings,
    finetune_settings,
    predict_settings,
)
from bertkit.settings.embedding import EmbedSettings
from bertkit.settings.probes import PROBE_SETTINGS
from bertkit.tasks.models import load_model
from bertkit.tasks.predictions import prediction_records
from bertkit.tasks.probes import PROBES


def pretrain(
    corpus: Place | Sequence[Place],
    *,
    output: Place | None = None,
    settings: Values | None = None,
    recipe: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Outcome:
    """``bertkit pretrain``: trains a BERT on text, or goes on where the same call was interrupted.

    Args:
        corpus: Text files or folders of them.
        output: The run folder; None: below ``runs/``.
        settings: Any other setting by its dotted name, ``{"model.size": "tiny", "budget.steps": 1000}``.
        recipe: A preset's name or a YAML file.
        overwrite: Start anew where a run lies already.
        quiet: Say nothing on the way; what should be known is among the outcome's warnings all the same.

    Raises:
        BertkitError: Each says what to do; see :mod:`bertkit.errors`.
    """
    files = [corpus] if isinstance(corpus, str | os.PathLike) else list(corpus)
    given = arguments(settings, output, overwrite) | {"inputs.corpus": [os.fspath(file) for file in files]}
    made = checked(PretrainSettings, "pretrain", given, recipe)
    return heard(lambda console: training.pretrain(made, console), "pretrain", given, quiet)


def finetune(
    task: str,
    *,
    model: Place | None = None,
    data: Place | None = None,
    output: Place | None = None,
    settings: Values | None = None,
    recipe: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Outcome:
    """``bertkit finetune TASK``: trains a model for a task and scores it.

    Args:
        task: One that ``bertkit tasks`` lists.
        model: A run folder, a Hugging Face BERT folder or a hub name; None: BERT base from the hub.
        data: A folder with the task's own files or a hub data set; own files are ``settings={"data.train_file": …}``.
        output: As :func:`pretrain` has it, and so the rest.
        settings: As above; ``{"sweep.seeds": [1, 2, 3]}`` trains with each, and the outcome's ``extra["sweep"]`` has them all.
        recipe: As above.
        overwrite: As above.
        quiet: As above.

    Raises:
        BertkitError: See :mod:`bertkit.errors`.
    """
    given = arguments(settings, output, overwrite, model=model, data=data)
    made = of_task("finetune", finetune_settings, task, given, recipe)
    return heard(lambda console: tuning.finetune(made, console), "finetune", given | {"task": task}, quiet)


def evaluate(
    task: str,
    *,
    model: Place | None = None,
    data: Place | None = None,
    predictions: Place | None = None,
    output: Place | None = None,
    settings: Values | None = None,
    quiet: bool = False,
) -> Outcome:
    """``bertkit eval TASK``: official figures of a model (None: the newest run of the task), or of a file of predictions.

    ``mlm`` (with ``settings={"inputs.corpus": ["dev.txt"]}``) and ``blimp`` score a model as it was pretrained.

    Raises:
        BertkitError: See :mod:`bertkit.errors`.
    """
    given = arguments(settings, output, False, model=model, data=data, predictions=predictions)
    if (name := task.lower()) in PROBES:
        probe = checked(PROBE_SETTINGS[name], "eval", given, None)
        return heard(lambda console: run_probe(probe, console), "eval", given | {"task": name}, quiet)
    made = of_task("eval", eval_settings, task, given, None)
    return heard(lambda console: evaluating.evaluate(made, console), "eval", given | {"task": task}, quiet)


def predict(
    task: str,
    texts: Iterable[str | tuple[str, str]] | None = None,
    *,
    model: Place | None = None,
    data: Place | None = None,
    settings: Values | None = None,
    quiet: bool = False,
) -> list[dict[str, Any]]:
    """``bertkit predict TASK``: a record for each text (or pair of texts), or for each row of the data, in their order.

    Args:
        task: One that ``bertkit tasks`` lists.
        texts: For tasks over texts: any iterable, a pair as a tuple. Line ends and tabs in them become spaces.
        model: As :func:`evaluate` has it.
        data: A file, a folder with the task's own files, or a hub data set; instead of ``texts``.
        settings: Any other setting by its dotted name.
        quiet: Say nothing.

    Returns:
        Records with ``id``, ``gold``, ``prediction``, ``score`` and the kind's own facts, as ``predictions.jsonl`` has them.

    Raises:
        BertkitError: See :mod:`bertkit.errors`.
    """
    if (texts is None) == (data is None and not any(key.startswith("data.") for key in settings or {})):
        raise SettingsError("Give either texts or data to predict.", where="predict(texts=…, data=…)")
    given = arguments(settings, None, False, model=model, data=data)
    made = of_task("predict", predict_settings, task, given, None)
    lines = io.StringIO("".join(f"{line}\n" for line in _written(map(_line, _each(texts or (), pairs=True)))))
    if texts is not None and not lines.getvalue():
        return []

    def job(console: Console) -> Outcome:
        parts = predicting.predicted(made, console, Machine.of(made.device), lines)
        said = (window for part in parts for window in part.windows)
        return Outcome(extra={"records": [record for window in said for record in prediction_records(window)]})

    records: list[dict[str, Any]] = heard(job, "predict", given | {"task": task}, quiet).extra["records"]
    return records


def embed(texts: Iterable[str], *, model: Place, settings: Values | None = None, quiet: bool = False) -> NDArray[np.float32]:
    """``bertkit embed``: a vector for each text, in their order, ``[n, H]`` float32.

    Args:
        texts: Any iterable; an empty text has a vector too.
        model: A run folder, a Hugging Face BERT folder or a hub name.
        settings: Any other setting by its dotted name, ``{"pooling": "cls", "layer": -2, "normalize": True}``.
        quiet: Say nothing.

    Raises:
        BertkitError: See :mod:`bertkit.errors`.
    """
    given = arguments(settings, None, False, model=model)
    made = checked(EmbedSettings, "embed", given, None)
    if made.tokens or made.files:
        raise SettingsError(
            "Here texts come from Python and each has one vector; load_encoder gives the states of tokens.",
            where="settings['tokens']" if made.tokens else "settings['files']",
        )

    def job(console: Console) -> Outcome:
        embedder = Embedder.of(made)
        with console.progress("Embedding", safe=True) as update:
            found = [np.zeros((0, embedder.width), dtype=np.float32)]
            for window in embedder.windows(_written(_each(texts))):
                found.append(window.vectors)
                update(embedder.texts)
        embedder.tell()
        return Outcome(extra={"vectors": np.concatenate(found)})

    vectors: NDArray[np.float32] = heard(job, "embed", given, quiet).extra["vectors"]
    return vectors


def load_encoder(model: Place, *, device: str = "cpu") -> Encoder:
    """The body of a model, without a head, ready to look at: ``encoder(input_ids, attention_mask, token_type_ids)``.

    Args:
        model: A run folder, a Hugging Face BERT folder or a hub name.
        device: Where it is put.

    Returns:
        In evaluation mode; its result has ``first()``, ``per_sequence()``, ``to_padded()``, and attentions on request.

    Raises:
        BertkitError: See :mod:`bertkit.errors`.
    """
    loaded, _ = load_model(model_folder(os.fspath(model)), "encoder")
    return loaded.encoder.to(device).eval()


def _each(texts: Iterable[Any], *, pairs: bool = False) -> Iterator[Any]:
    """The texts (or pairs of them) one after the other; what is none is named, and a single text is no row of characters."""
    if isinstance(texts, str | bytes):
        raise SettingsError("This is one text, where several are asked for: give a list.", where="texts")
    for number, text in enumerate(texts):
        parts = text if pairs and isinstance(text, tuple | list) else (text,)
        if not all(isinstance(part, str) for part in parts):
            raise DataError(f"This is no text: {text!r}.", where=f"texts[{number}]")
        yield text


def _written(texts: Iterable[str]) -> Iterator[str]:
    """The texts, each of which UTF-8 can hold."""
    for number, text in enumerate(texts):
        if (fault := no_character(text)) is not None:
            raise DataError(f"The text holds {fault}.", where=f"texts[{number}]")
        yield text


def _line(text: str | tuple[str, str]) -> str:
    parts = (text,) if isinstance(text, str) else text
    return "\t".join(" ".join(part.split("\t")).replace("\r", " ").replace("\n", " ") for part in parts)
