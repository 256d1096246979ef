-- check row_is_in_its_partition: A row is filed under the day and the minute of its event time.
SELECT auction, bidder, dateTime, dt, hm
FROM output
WHERE dt || ' ' || hm IS DISTINCT FROM left(CAST(dateTime AS VARCHAR), 16);

-- check partition_is_committed: Every partition of the filesystem sink is marked with _SUCCESS.
SELECT directory FROM "partition" WHERE NOT committed;

-- check conserves_bids: There are as many rows as bids, with the same sum of prices.
WITH seen AS (SELECT count(*) AS bids, sum(price) AS price FROM output),
sent AS (SELECT count(*) AS bids, sum(price) AS price FROM bid)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
