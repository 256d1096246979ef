"""The contract of the result of each query: its columns, in order, with their canonical types.

Types have the names of DuckDB. A timestamp is a moment in UTC; a file may store it with or without
a time zone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


class ExpectationsError(ValueError):
    """A validation is not possible. The message is one line: what is wrong, where, what to do."""


_SQL = {"bigint": "BIGINT", "text": "VARCHAR", "timestamp": "TIMESTAMP", "decimal": "DECIMAL(23,3)"}

_NO_BIDS = "SELECT count(*) = 0 FROM bid"
# Of five thousand bids of any Nexmark generator, some pass every filter and join of a query ...
_FEW_BIDS = "SELECT count(*) < 5000 FROM bid"
# ... but not of q23: some bidders of the generator of nexmark-flink are not the id of a person.
_FEW_KNOWN_BIDDERS = "SELECT count(*) < 5000 FROM bid WHERE bidder IN (SELECT id FROM person)"


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    type: str

    def __str__(self) -> str:
        """Return the name and the type, as in a table definition."""
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Contract:
    """The columns of a query's result, and how the result is compared.

    ``sql`` is the name of the SQL files of the query; a variant of a query has the same files.
    ``may_be_empty`` is a SELECT over the events of a condition under which a result without rows
    is right. ``tie_free`` are the columns that do not depend on ties; if the events have no
    numbers, only these are compared. ``fold`` has the expressions, by column, that aggregate the
    output before it is compared. A job of a person's own has its ``reference`` as SQL here, and
    ``sql`` is the file of it; without one it is not ``compared``.
    """

    query: str
    sql: str
    columns: tuple[Column, ...]
    may_be_empty: str = _NO_BIDS
    tie_free: tuple[str, ...] = ()
    fold: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""
    compared: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def reference_columns(self) -> tuple[Column, ...]:
        """The columns of the reference: the columns of the fold if there is one; if not, all."""
        return tuple(column for column in self.columns if column.name in (self.fold or self.names))


def columns_of_text(text: str) -> tuple[Column, ...]:
    """Return the columns of a text as ``bigint: a b; text: c``: names by type, in order."""
    groups = (group.split(":") for group in text.split(";"))
    return tuple(
        Column(name, _SQL[kind.strip()]) for kind, names in groups for name in names.split()
    )


_BID = "bigint: auction bidder price; timestamp: dateTime; text: extra"
_FULL_BID = "bigint: auction bidder price; text: channel url; timestamp: dateTime; text: extra"
_STATISTICS = "bigint: " + " ".join(
    f"{rank}_{what}"
    for what in ("bids", "bidders", "auctions")
    for rank in ("total", "rank1", "rank2", "rank3")
)
_SESSIONS = "bigint: bidder bid_count; timestamp: starttime endtime"
_CALCULATION = (
    "bigint: auction bidder; decimal: price; text: bidTimeType; timestamp: dateTime; "
    "text: extra; bigint: c_counts"
)
_AUCTION_DETAILS = (
    "text: itemName description; bigint: initialBid reserve; timestamp: auction_dateTime expires; "
    "bigint: seller category; text: auction_extra"
)
_WINNING = (
    "bigint: id; text: itemName description; bigint: initialBid reserve; "
    "timestamp: dateTime expires; bigint: seller category; text: extra; "
    "bigint: auction bidder price; timestamp: bid_dateTime; text: bid_extra"
)


_COLUMNS = {
    "q0": _BID,
    "q1": "bigint: auction bidder; decimal: price; timestamp: dateTime; text: extra",
    "q2": "bigint: auction price",
    "q3": "text: name city state; bigint: id",
    "q4": "bigint: category avg_price",
    "q5": "bigint: auction num; timestamp: window_start window_end",
    "q6": "bigint: seller avg_price",
    "q7": _BID,
    "q8": "bigint: id; text: name; timestamp: window_start",
    "q9": _WINNING,
    "q10": _BID + "; text: dt hm",
    "q11": _SESSIONS,
    "q12": _SESSIONS,
    "q13": "bigint: auction bidder price; timestamp: dateTime; text: value",
    "q14": _CALCULATION,
    "q14_python_udf": _CALCULATION,
    "q15": "text: day; " + _STATISTICS,
    "q16": "text: channel day minute; " + _STATISTICS,
    "q17": "bigint: auction; text: day; bigint: total_bids rank1_bids rank2_bids rank3_bids "
    "min_price max_price avg_price sum_price",
    "q18": _FULL_BID,
    "q19": _FULL_BID + "; bigint: rank_number",
    "q20": "bigint: auction bidder price; text: channel url; timestamp: bid_dateTime; "
    "text: bid_extra; " + _AUCTION_DETAILS,
    "q21": "bigint: auction bidder price; text: channel channel_id",
    "q22": "bigint: auction bidder price; text: channel dir1 dir2 dir3",
    "q23": "bigint: bidder price; text: channel url bid_extra; bigint: person_id; "
    "text: name emailAddress creditCard city state person_extra; " + _AUCTION_DETAILS,
}
_SELECTIVE = ("q2", "q3", "q4", "q6", "q8", "q9", "q14", "q14_python_udf", "q20")
_MAY_BE_EMPTY = dict.fromkeys(_SELECTIVE, _FEW_BIDS) | {"q23": _FEW_KNOWN_BIDDERS}
_TIE_FREE = {
    "q9": "id itemName description initialBid reserve dateTime expires seller category extra "
    "auction price bid_dateTime",
    "q18": "auction bidder dateTime",
    "q19": "auction price rank_number",
}
_FOLDS = {"q12": {"bidder": "bidder", "bid_count": "CAST(sum(bid_count) AS BIGINT)"}}

CONTRACTS: dict[str, Contract] = {
    query: Contract(
        query,
        f"q{int(query[1:].partition('_')[0]):02d}.sql",
        columns_of_text(columns),
        _MAY_BE_EMPTY.get(query, _NO_BIDS),
        tuple(_TIE_FREE.get(query, "").split()),
        _FOLDS.get(query, {}),
    )
    for query, columns in _COLUMNS.items()
}


#: The contracts of queries that only experiments run. They have a reference, but no invariants.
EXPERIMENT_CONTRACTS: dict[str, Contract] = {
    name: Contract(name, f"{name}.sql", columns_of_text(columns))
    for name, columns in {
        "long_window": "bigint: slot; timestamp: window_start window_end; bigint: bids total",
        "reused_view": "bigint: auction; timestamp: window_start; text: kind; bigint: amount",
        "distinct_bidders": "bigint: auction; timestamp: window_start; bigint: bidders",
        "new_sellers": "bigint: seller; timestamp: window_start; bigint: auctions",
        "joined_counts": "bigint: auction; timestamp: window_start; bigint: bids highest",
        "json_all_fields": _FULL_BID,
        "json_two_fields": "bigint: auction price",
    }.items()
}


def contract(query: str) -> Contract:
    """Return the contract of `query`, as ``"q5"``; ExpectationsError if there is no such query."""
    try:
        return (CONTRACTS | EXPERIMENT_CONTRACTS)[query]
    except KeyError:
        known = ", ".join(CONTRACTS)
        raise ExpectationsError(f"unknown query '{query}': use one of {known}") from None
