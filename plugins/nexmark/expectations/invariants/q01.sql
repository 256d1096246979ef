-- check conserves_value: There are as many rows as bids, and their prices add up to exactly 0.908
-- of the bids' prices.
WITH seen AS (SELECT count(*) AS bids, sum(price) AS price FROM output),
sent AS (SELECT count(*) AS bids, CAST(sum(price) * 0.908 AS DECIMAL(38, 3)) AS price FROM bid)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
