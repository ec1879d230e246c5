"""Evaluations of a pretrained model: nothing is trained for them, so they are no tasks of the registry. Free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from bertkit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What ``bertkit eval`` asks of a masked LM as it was pretrained.

    Attributes:
        name: What the command line calls it.
        title: One line for ``bertkit tasks``.
        primary: The figure that decides.
        figures: All that a gate may be about; those of pairs where the model has that head.
        reads: What it reads, and the flag that names it.
        command: How it is called.
        instead: What is trained instead, in words.
    """

    name: str
    title: str
    primary: str
    figures: tuple[str, ...]
    reads: str
    command: str
    instead: str


PROBES = {
    probe.name: probe
    for probe in (
        Probe(
            name="mlm",
            title="Pretrained: how well are masked words guessed?",
            primary="mlm_loss",
            figures=(
                *("mlm_loss", "perplexity", "mlm_accuracy", "nats_per_word", "nats_per_character"),
                *("nsp_loss", "nsp_accuracy", "sop_loss", "sop_accuracy"),
            ),
            reads="--corpus FILE",
            command="bertkit eval mlm --corpus FILE",
            instead="`bertkit pretrain --corpus FILE` trains masked LM.",
        ),
        Probe(
            name="blimp",
            title="Pretrained: is the grammatical sentence of two the likelier?",
            primary="accuracy",
            figures=("accuracy",),
            reads="--data FOLDER",
            command="bertkit eval blimp --data FOLDER",
            instead="There is nothing to train: it scores a model as it was pretrained.",
        ),
    )
}


def refuse_probe(name: str) -> None:
    """Refuses the name of a probe where a task is meant.

    Raises:
        UsageError: It is one; what to do instead is said (exit 2).
    """
    if (probe := PROBES.get(name)) is not None:
        raise UsageError(
            f"{name} is an evaluation of a pretrained model, no task to train for or to predict.",
            where="TASK",
            hint=f"`{probe.command} --model MODEL` scores one. {probe.instead}",
        )
