-- check session_is_as_long_as_its_gap: A session has a bid and lasts the gap of 10 s or longer.
SELECT * FROM output
WHERE (bid_count >= 1 AND endtime - starttime >= INTERVAL 10 SECOND) IS NOT TRUE;

-- check sessions_are_apart: Two sessions of a bidder neither overlap nor touch.
WITH following AS (
    SELECT *, lead(starttime) OVER (PARTITION BY bidder ORDER BY starttime, endtime) AS next_start
    FROM output
)
SELECT * FROM following WHERE next_start <= endtime;

-- check session_begins_and_ends_with_a_bid: A bid of the bidder begins the session, and another (or
-- the same) lies 10 s before its end.
SELECT * FROM output
WHERE NOT EXISTS (
    FROM bid WHERE bid.bidder = output.bidder AND bid.dateTime = output.starttime
)
OR NOT EXISTS (
    FROM bid
    WHERE bid.bidder = output.bidder AND bid.dateTime = output.endtime - INTERVAL 10 SECOND
);

-- check conserves_bids: The sessions of all bidders hold as many bids as there are.
WITH seen AS (SELECT sum(bid_count) AS bids FROM output),
sent AS (SELECT count(*) AS bids FROM bid)
SELECT seen.bids AS seen, sent.bids AS sent
FROM seen, sent
WHERE seen.bids IS DISTINCT FROM sent.bids;
