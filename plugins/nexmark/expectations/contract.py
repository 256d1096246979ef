"""The contract of every query's result: its columns, in order, with their canonical types.

Types are named as DuckDB names them. A timestamp is an instant in UTC; whether a file stores it
with or without a zone does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


class ExpectationsError(ValueError):
    """A validation that cannot be made. The text is one line: what, where, remedy."""


_SQL = {"bigint": "BIGINT", "text": "VARCHAR", "timestamp": "TIMESTAMP", "decimal": "DECIMAL(23,3)"}

_NO_BIDS = "SELECT count(*) = 0 FROM bid"
# Five thousand bids of any Nexmark generator pass every filter and join of the 23 queries ...
_FEW_BIDS = "SELECT count(*) < 5000 FROM bid"
# ... but for q23's, where nexmark-flink's generator has bidders that are no person's id.
_FEW_KNOWN_BIDDERS = "SELECT count(*) < 5000 FROM bid WHERE bidder IN (SELECT id FROM person)"


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    type: str

    def __str__(self) -> str:
        """Return name and type, as in a table definition."""
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Contract:
    """The columns of a query's result, and how it is compared.

    ``sql`` names the query's SQL files (a variant shares them). ``may_be_empty`` is a condition, as
    SQL over the events, under which no row is a right answer. ``tie_free`` are the columns that
    ties cannot change: only these are compared when the events carry no event number. ``fold``
    says how to aggregate the output (column to expression) before it is compared.
    """

    query: str
    sql: str
    columns: tuple[Column, ...]
    may_be_empty: str = _NO_BIDS
    tie_free: tuple[str, ...] = ()
    fold: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def reference_columns(self) -> tuple[Column, ...]:
        """The columns of the reference: the columns of the fold if there is one, else all."""
        return tuple(c for c in self.columns if c.name in (self.fold or self.names))


def columns_of_text(text: str) -> tuple[Column, ...]:
    """Read ``bigint: a b; text: c``: column names by type, in order."""
    groups = (group.split(":") for group in text.split(";"))
    return tuple(Column(x, _SQL[kind.strip()]) for kind, names in groups for x in names.split())


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


#: Queries that only experiments run. They have no invariants besides their reference.
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
    """Return the contract of `query` (``"q5"``); ExpectationsError if there is no such query."""
    try:
        return (CONTRACTS | EXPERIMENT_CONTRACTS)[query]
    except KeyError:
        known = ", ".join(CONTRACTS)
        raise ExpectationsError(f"unknown query '{query}': use one of {known}") from None
