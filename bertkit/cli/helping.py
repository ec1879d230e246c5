"""A command's help as plain text under headings: every name of a flag whole, at any width, in pipes as on terminals."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_WIDE = 38  # columns of a flag's names before its words begin on a line of their own


class Command(TyperCommand):
    """A command whose flags stand under the headings that they name (``rich_help_panel``)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments, then each heading's flags, in the order of the first flag of each."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                panel = getattr(parameter, "rich_help_panel", None)
                heading = panel or ("Arguments" if parameter.param_type_name == "argument" else "Every command")
                names = record[0].partition(" <")[0].replace("_", "-")  # an argument's Python type tells nobody anything
                sections.setdefault(heading, []).append((names, record[1]))
        for heading, rows in sorted(sections.items(), key=lambda section: section[0] == "Every command"):
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=_WIDE)
