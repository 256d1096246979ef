-- check value_is_of_the_key: The value is the auction id modulo 10 000, as text.
SELECT * FROM output WHERE value IS DISTINCT FROM CAST(auction % 10000 AS VARCHAR);

-- check conserves_bids: Every bid matches exactly one line of the side input: as many rows as bids,
-- with the same sum of prices.
WITH seen AS (SELECT count(*) AS bids, sum(price) AS price FROM output),
sent AS (SELECT count(*) AS bids, sum(price) AS price FROM bid)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
