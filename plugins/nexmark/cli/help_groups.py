"""The help of a command with many verbs: a section for each group of them."""

from typing import Any

from typer.core import TyperGroup

from nexmark.model import grouped

_OTHERS = "Commands"


class GroupedVerbs(TyperGroup):
    """Verbs that are listed by the `rich_help_panel` that each was added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of verbs, in the order in which they were added."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        for group, verbs in grouped(
            self.commands.items(), lambda named: getattr(named[1], "rich_help_panel", None)
        ).items():
            with formatter.section(group if isinstance(group, str) else _OTHERS):
                formatter.write_dl([(name, verb.get_short_help_str(limit)) for name, verb in verbs])
