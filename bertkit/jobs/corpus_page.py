"""An inspection as a page: figures, histograms, masked examples, and the judgement at its end, where the eye is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.corpus.judgement import Judgement, percent
from bertkit.corpus.lengths import Lengths
from bertkit.corpus.overlap import LEAST
from bertkit.jobs.console import Console, clean
from bertkit.jobs.corpus_judgement import Seen, seen_rows, short_name
from bertkit.jobs.corpus_replay import PAIR_LABELS
from bertkit.jobs.layout import beside, cut, histogram, page_width, shows_blocks
from bertkit.jobs.masked_text import LEGEND, styled

if TYPE_CHECKING:
    from bertkit.jobs.corpus_inspect import Inspection

_LEVELS = {"error": "bold red", "warning": "bold yellow"}
_INDENT = "  "


def print_page(found: Inspection, console: Console) -> None:
    """Prints it on stdout."""
    width = page_width(console.stdout)
    casing = "uncased" if found.wordpiece.lowercase else "cased"
    console.styled([(cut(clean(found.name), width - 30), "bold"), (f"  vocabulary of {found.wordpiece.size:,}, {casing}", "")])
    console.result()
    _figures(found, console, width)
    console.result()
    _histograms(found.facts.sentences, found.facts.documents, console, width)
    if found.facts.examples:
        console.result()
        _examples(found, console)
    console.result()
    _judgements(found, console)


def _figures(found: Inspection, console: Console, width: int) -> None:
    counts, facts = found.store.counts, found.facts
    tokens, unknown = found.store.tokens, counts.get("unknown_tokens", 0)
    dropped = counts.get("dropped_documents", 0)
    rows = [
        ("documents", f"{found.store.documents:,}" + (f"; {dropped:,} without a token were dropped" if dropped else "")),
        ("sentences", f"{facts.sentences.count:,}"),
        ("tokens", f"{tokens:,}"),
        ("unknown", f"{percent(unknown / max(1, tokens))} of the tokens" + _words(found)),
        ("unigram", f"{facts.unigram:.2f} nats a token, a masked-word loss that word frequencies alone give"),
    ]
    for epoch in facts.epochs:
        share = "no pairs" if epoch.is_next is None else f"{100 * epoch.is_next:.1f} % {PAIR_LABELS[facts.objective][0]}"
        cut_ones = f", {epoch.cut_sentences:,} sentence{'s' * (epoch.cut_sentences > 1)} cut" if epoch.cut_sentences else ""
        rows.append(
            (f"L = {epoch.max_length}", f"{epoch.examples:,} examples an epoch, {share}, {epoch.tokens:.0f} tokens{cut_ones}")
        )
    wide = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        console.styled([(value, "")], first=f"{_INDENT}{name:<{wide}}", rest=_INDENT + " " * wide)


def _words(found: Inspection) -> str:
    if found.survey is None or not found.survey.unknown_words:
        return ""
    words = ", ".join(f"{cut(clean(word), 20)} {count:,}" for word, count in found.survey.unknown_words[:8])
    return (": of a part, " if found.survey.unknown_sampled else ": ") + words


def _histograms(sentences: Lengths, documents: Lengths, console: Console, width: int) -> None:
    half = (width - 4) // 2
    blocks = shows_blocks(getattr(console.stdout, "encoding", None))
    columns = [
        [f"Tokens of a {name}: {lengths.mean:,.0f} on average", *histogram(*_used(lengths), half, blocks=blocks)]
        for name, lengths in (("sentence", sentences), ("document", documents))
    ]
    for line in beside(columns[0], columns[1], half + 2):
        console.result(_INDENT + line)


def _used(lengths: Lengths) -> tuple[Sequence[int], list[str]]:
    """The classes from the first that is not empty."""
    first = next((n for n, count in enumerate(lengths.classes) if count), 0)
    return lengths.classes[first:], lengths.labels[first:]


def _examples(found: Inspection, console: Console) -> None:
    console.styled([("Examples as the model sees them. ", ""), *LEGEND], first=_INDENT, rest=_INDENT)
    for example in found.facts.examples:
        label = "" if example.is_next is None else PAIR_LABELS[found.facts.objective][not example.is_next] + "  "
        console.styled([(label, "bold blue"), *styled(example.pieces)], first=_INDENT + "- ", rest=_INDENT * 2)


def _judgements(found: Inspection, console: Console) -> None:
    _seen(found.seen, console)
    if not found.judgements:
        console.styled([("No fault found.", "bold green")])
    for judgement in found.judgements:
        _judgement(judgement, console)


def _seen(seen: Sequence[Seen], console: Console) -> None:
    """Files of which nothing is in the text, in one sentence; those of which little is; the others are judged."""
    clean = [short_name(each.source) for each in seen if not each.found]
    if clean:
        console.styled([("Nothing of these stands in this text: ", ""), (", ".join(clean), ""), (".", "")], rest=_INDENT)
    for each in seen:
        if each.found and seen_rows(each) is None:
            what = "documents" if each.validation else "rows"
            told = f"{each.found:,} of {each.rows:,} {what} of {short_name(each.source)} stand in this text: too few to matter."
            console.styled([(told, "")], rest=_INDENT)
    if short := sum(each.short for each in seen):
        console.styled([(f"{short:,} rows have no text of {LEAST} pieces or more, and were not looked for.", "")], rest=_INDENT)
    if seen:
        console.result()


def _example(example: Any) -> str:
    """A text, with how often it stands there, or where."""
    if isinstance(example, str):
        return example
    count = f"{example['count']:,} x " if "count" in example else ""
    where = f"{Path(example['where']).name}: " if "where" in example else ""
    return f"{count}{where}{example['text']}"


def _judgement(judgement: Judgement, console: Console) -> None:
    level = judgement.level.capitalize()
    console.styled([(f"{level}: ", _LEVELS[judgement.level]), (judgement.message, "")], rest=_INDENT)
    width = page_width(console.stdout) - 2 * len(_INDENT)
    for example in judgement.figures.get("examples", [])[:3]:
        console.styled([(cut(clean(_example(example)), width), "dim")], first=_INDENT * 2)
    console.styled([(judgement.hint, "")], first=_INDENT, rest=_INDENT)
