"""``bertkit finetune``: a task's rows and a BERT in, a run folder with a scored model out."""

from __future__ import annotations

from bertkit.jobs.console import Console
from bertkit.jobs.ending import already_finished, told
from bertkit.jobs.finetuning import Finetuning
from bertkit.jobs.material import Material
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine, check_inputs, claimed, input_sizes
from bertkit.jobs.sweep import Sweep, finished_sweep
from bertkit.settings.commands import FinetuneSettings


def finetune(settings: FinetuneSettings, console: Console) -> Outcome:
    """Fine-tunes a model for a task, once or as a sweep, or goes on where an earlier start of the same was stopped.

    Raises:
        BertkitError: Each with its exit code; see :mod:`bertkit.errors`.
    """
    machine = Machine.of(settings.device, report_to=settings.run.report_to)
    data = settings.data
    sizes = input_sizes((data.folder, data.train_file, data.validation_file))
    facts = {"task": settings.task, "input_bytes": sizes}
    with claimed(settings, console, machine.peers, command="finetune", name=settings.task, facts=facts) as folder:
        if folder.situation == "finished":
            check_inputs(folder, sizes)
            return finished_sweep(folder, console) if settings.sweep.on else already_finished(folder, console)
        material = Material(settings, console, machine.peers)
        if settings.sweep.on:
            return Sweep(settings, console, machine, folder, material, facts).run()
        figures = Finetuning(settings, console, machine.as_before(folder, settings), folder, material).trained()
        return told(figures, folder, console)
