"""The contract of every query's result: its columns, in order, with their canonical types.

Types are named as DuckDB names them. A timestamp is an instant in UTC; whether a file stores it
with or without a zone does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


class ExpectationsError(ValueError):
    """A validation that cannot be made. The text is one line: what, where, remedy."""


class EventsError(ExpectationsError):
    """The events cannot be read, or are not Nexmark events."""


class OutputError(ExpectationsError):
    """The query's output cannot be read."""


_TYPES = {
    "bigint": "BIGINT",
    "text": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "decimal": "DECIMAL(23,3)",
}

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
    return tuple(
        Column(name, _TYPES[kind.strip()]) for kind, names in groups for name in names.split()
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


def _contract(
    number: int,
    columns: str,
    *,
    variant: str = "",
    may_be_empty: str = _NO_BIDS,
    tie_free: str = "",
    fold: Mapping[str, str] | None = None,
) -> Contract:
    return Contract(
        query=f"q{number}{variant}",
        sql=f"q{number:02d}.sql",
        columns=columns_of_text(columns),
        may_be_empty=may_be_empty,
        tie_free=tuple(tie_free.split()),
        fold=fold or {},
    )


CONTRACTS: dict[str, Contract] = {
    entry.query: entry
    for entry in (
        _contract(0, _BID),
        _contract(1, "bigint: auction bidder; decimal: price; timestamp: dateTime; text: extra"),
        _contract(2, "bigint: auction price", may_be_empty=_FEW_BIDS),
        _contract(3, "text: name city state; bigint: id", may_be_empty=_FEW_BIDS),
        _contract(4, "bigint: category avg_price", may_be_empty=_FEW_BIDS),
        _contract(5, "bigint: auction num; timestamp: window_start window_end"),
        _contract(6, "bigint: seller avg_price", may_be_empty=_FEW_BIDS),
        _contract(7, _BID),
        _contract(8, "bigint: id; text: name; timestamp: window_start", may_be_empty=_FEW_BIDS),
        _contract(
            9,
            _WINNING,
            may_be_empty=_FEW_BIDS,
            tie_free="id itemName description initialBid reserve dateTime expires seller category "
            "extra auction price bid_dateTime",
        ),
        _contract(10, _BID + "; text: dt hm"),
        _contract(11, _SESSIONS),
        _contract(
            12, _SESSIONS, fold={"bidder": "bidder", "bid_count": "CAST(sum(bid_count) AS BIGINT)"}
        ),
        _contract(13, "bigint: auction bidder price; timestamp: dateTime; text: value"),
        _contract(14, _CALCULATION, may_be_empty=_FEW_BIDS),
        _contract(14, _CALCULATION, variant="_python_udf", may_be_empty=_FEW_BIDS),
        _contract(15, "text: day; " + _STATISTICS),
        _contract(16, "text: channel day minute; " + _STATISTICS),
        _contract(
            17,
            "bigint: auction; text: day; bigint: total_bids rank1_bids rank2_bids rank3_bids "
            "min_price max_price avg_price sum_price",
        ),
        _contract(18, _FULL_BID, tie_free="auction bidder dateTime"),
        _contract(19, _FULL_BID + "; bigint: rank_number", tie_free="auction price rank_number"),
        _contract(
            20,
            "bigint: auction bidder price; text: channel url; timestamp: bid_dateTime; "
            "text: bid_extra; " + _AUCTION_DETAILS,
            may_be_empty=_FEW_BIDS,
        ),
        _contract(21, "bigint: auction bidder price; text: channel channel_id"),
        _contract(22, "bigint: auction bidder price; text: channel dir1 dir2 dir3"),
        _contract(
            23,
            "bigint: bidder price; text: channel url bid_extra; bigint: person_id; "
            "text: name emailAddress creditCard city state person_extra; " + _AUCTION_DETAILS,
            may_be_empty=_FEW_KNOWN_BIDDERS,
        ),
    )
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
