"""``bertkit corpus inspect``: what a model will see of a text, and whether the text is fit to learn from."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.corpus.documents import open_corpus
from bertkit.corpus.holding import held
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.judgement import Counted, Judgement
from bertkit.corpus.survey import Survey, survey_text
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, UsageError
from bertkit.jobs.building import read_text, stores_folder, with_rate
from bertkit.jobs.console import Console
from bertkit.jobs.corpus_cache import find_store, kept_stores
from bertkit.jobs.corpus_facts import Facts, facts_of
from bertkit.jobs.corpus_judgement import Seen, judge_text
from bertkit.jobs.corpus_page import print_page
from bertkit.jobs.corpus_replay import show_step
from bertkit.jobs.corpus_seen import seen_in
from bertkit.jobs.corpus_vocabulary import vocabulary_of
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import STATE, read_state
from bertkit.jobs.pretraining_batches import phases_of
from bertkit.labelled.texts import evaluation_files
from bertkit.notices import hushed, say
from bertkit.settings.commands import PretrainSettings
from bertkit.settings.resolve import resolve
from bertkit.settings.tools import CorpusInspectSettings

LENGTHS = (128, 512)  # planned unless others are given, or a run has its own
# What a build says of a text in a note is judged here, with more to it.
_JUDGED = (
    "duplicate-documents",
    "duplicate-lines",
    "no-blank-line",
    "one-sentence-documents",
    "dropped-documents",
    "unknown-words",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found.

    Attributes:
        name: The text, for people.
        store: Its store.
        wordpiece: Its vocabulary.
        survey: The look at its text; None where only a store was named.
        facts: The look at its store.
        seen: What of validation and evaluation files stands in it.
        judgements: Its faults.
    """

    name: str
    store: CorpusStore
    wordpiece: WordPiece
    survey: Survey | None
    facts: Facts
    seen: tuple[Seen, ...] = ()
    judgements: tuple[Judgement, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        survey, facts, counts = self.survey, self.facts, self.store.counts
        told: dict[str, Any] = {
            "judgements": [judgement.as_dict() for judgement in self.judgements],
            "name": self.name,
            "stores": self.store.folders,
            "counts": counts,
            "vocabulary": {"size": self.wordpiece.size, "lowercase": self.wordpiece.lowercase},
            "unknown_share": counts.get("unknown_tokens", 0) / max(1, self.store.tokens),
            "unigram_cross_entropy": facts.unigram,
            "sentence_lengths": facts.sentences.as_dict(),
            "document_lengths": facts.documents.as_dict(),
            "epochs": [asdict(epoch) for epoch in facts.epochs],
            "examples": [example.as_dict() for example in facts.examples],
            "seen": [asdict(seen) for seen in self.seen],
        }
        if survey is not None:
            told |= {
                "characters": survey.characters,
                "unknown_words": [{"word": word, "count": count} for word, count in survey.unknown_words],
                "unknown_words_sampled": survey.unknown_sampled,
                "scripts": [
                    {**asdict(script), "pieces_a_word": script.pieces_a_word, "unknown_share": script.unknown_share}
                    for script in survey.scripts
                ],
            }
        return told


def inspect_corpus(settings: CorpusInspectSettings, console: Console) -> Outcome:
    """Looks at a text, a store or the text of a run, and judges it; or shows the batch of one step of a run.

    Raises:
        DataError: ``strict``, and the text has a fault (exit 3).
        BertkitError: As the build and the readers.
    """
    if settings.step is not None:
        shown = settings.examples if "examples" in settings.model_fields_set else None
        return show_step(settings.paths, settings.step, console, shown=shown)
    found = _inspected(*_of_run(settings), console)
    print_page(found, console)
    told = found.as_dict()
    if settings.strict and found.judgements:
        kinds = ", ".join(judgement.kind for judgement in found.judgements)
        faults = "1 fault" if len(found.judgements) == 1 else f"{len(found.judgements)} faults"
        raise DataError(f"The text has {faults}: {kinds}.", where=found.name).telling(told)
    return Outcome(output=next(iter(found.store.folders), None), extra=told)


def _of_run(settings: CorpusInspectSettings) -> tuple[CorpusInspectSettings, ExampleSettings, MaskingSettings]:
    """For a run folder the settings that inspect its text, and how it makes examples; others stay."""
    run = Path(settings.paths[0])
    state = read_state(run) if len(settings.paths) == 1 and (run / STATE).is_file() else None
    if state is None:
        return settings, ExampleSettings(), MaskingSettings()
    if state.get("command_name") != "pretrain":
        raise UsageError(
            f"This is a run of `bertkit {state.get('command_name')}`, and only those of `bertkit pretrain` have a corpus.",
            where=settings.paths[0],
        )
    its = resolve(PretrainSettings, command="pretrain", recipe=str(run / "settings.yaml"))
    tokenizer = settings.tokenizer.model_copy(update={"path": settings.tokenizer.path or str(run)})
    inspected = settings.model_copy(
        update={
            "paths": its.inputs.corpus,
            "corpus": its.corpus,
            "tokenizer": tokenizer,
            "validation": settings.validation or its.inputs.validation,
            "max_lengths": settings.max_lengths or tuple(dict.fromkeys(phase.max_length for phase in phases_of(its))),
        }
    )
    return inspected, its.examples, its.masking


def _inspected(settings: CorpusInspectSettings, made: ExampleSettings, masking: MaskingSettings, console: Console) -> Inspection:
    for path in settings.against:  # before any work
        evaluation_files(Path(path))
    if settings.validation:
        open_corpus(settings.validation, settings.corpus)
    named = NamedCorpus.of(_folders(settings.paths), settings.corpus)
    wordpiece = _vocabulary(named, settings, console)
    named.must_agree(wordpiece, settings.tokenizer.path or "--tokenizer")
    with hushed(*_JUDGED):
        store = read_text(settings.corpus, named, wordpiece, console, "Reading the text", workers=settings.workers)
    with (
        _work_folder() as work,
        held(store.folders),
        hushed(*_JUDGED),
    ):
        survey = _survey(named, settings, wordpiece, console, Path(work) / "survey")
        facts = facts_of(
            store,
            wordpiece,
            settings.max_lengths or LENGTHS,
            made=made,
            masking=masking,
            seed=settings.seed,
            examples=settings.examples,
            plans=Path(work) / "plans",
            console=console,
        )
        seen = seen_in(store, wordpiece, settings.corpus, console, validation=settings.validation, against=settings.against)
    counted = _counted(store, facts, wordpiece, settings.corpus.documents)
    return Inspection(
        name=", ".join(settings.paths),
        store=store,
        wordpiece=wordpiece,
        survey=survey,
        facts=facts,
        seen=tuple(seen),
        judgements=tuple(judge_text(counted, survey, seen)),
    )


def _work_folder() -> tempfile.TemporaryDirectory[str]:
    """In the cache, as /tmp may be memory; in /tmp where the cache may not be written."""
    try:
        stores_folder().mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".inspecting-", dir=stores_folder())
    except OSError:
        return tempfile.TemporaryDirectory(prefix="bertkit-inspecting-")


def _folders(paths: Sequence[str]) -> list[str]:
    """What is named, the names of stores in the cache replaced by their folders."""
    digits, found = set("0123456789abcdef"), []
    for path in paths:
        is_name = not Path(path).exists() and len(path) >= 4 and set(path.lower()) <= digits
        found.append(str(find_store(path, kept_stores()).folder) if is_name else path)
    return found


def _vocabulary(named: NamedCorpus, settings: CorpusInspectSettings, console: Console) -> WordPiece:
    """The one that is named, the stores' own, or one trained on the text."""
    if settings.tokenizer.path is None and (own := named.tokenizer()) is not None:
        return own
    if named.texts is None:
        return load_wordpiece(Path(str(settings.tokenizer.path)), cased=settings.tokenizer.cased)
    return vocabulary_of(named.texts, settings.corpus, settings.tokenizer, console)


def _survey(
    named: NamedCorpus, settings: CorpusInspectSettings, wordpiece: WordPiece, console: Console, work: Path
) -> Survey | None:
    """A look at the texts that are named, not at stores: those have no lines any more."""
    if named.stores:
        say("stores-have-no-lines", "A store has no lines any more: what repeats and which words are unknown is told of texts.")
    if named.texts is None:
        return None
    with console.progress("Looking at its lines", safe=True) as update:
        return survey_text(named.texts, settings.corpus, wordpiece, work, progress=with_rate(update))


def _counted(store: CorpusStore, facts: Facts, wordpiece: WordPiece, parting: str) -> Counted:
    counts = store.counts
    return Counted(
        documents=store.documents,
        tokens=store.tokens,
        unknown_tokens=counts.get("unknown_tokens", 0),
        one_sentence_documents=counts.get("one_sentence_documents", 0),
        dropped_documents=counts.get("dropped_documents", 0),
        longest_document=facts.documents.longest,
        parting=parting,
        lowercase=wordpiece.lowercase,
    )
