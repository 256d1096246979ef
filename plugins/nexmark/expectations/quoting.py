"""Names and texts in quotes, as DuckDB's SQL needs them."""


def identifier(name: str) -> str:
    """Return a name in quotes, as SQL needs it if it is a word of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote(text: object) -> str:
    """Return a text in quotes, as SQL needs it."""
    return "'" + str(text).replace("'", "''") + "'"
