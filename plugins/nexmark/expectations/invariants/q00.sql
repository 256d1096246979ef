-- check conserves_bids: There are as many rows as bids, with the same sum of prices and the same
-- first and last event time.
WITH seen AS (
    SELECT count(*) AS bids, sum(price) AS price, min(dateTime) AS first, max(dateTime) AS last
    FROM output
),
sent AS (
    SELECT count(*) AS bids, sum(price) AS price, min(dateTime) AS first, max(dateTime) AS last
    FROM bid
)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
