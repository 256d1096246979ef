-- joined_counts: per auction and window of 10 s, its bids and the highest price above 10000.
WITH timed AS (
    SELECT auction, price,
           time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start
    FROM bid
),
counts AS (
    SELECT auction, window_start, count(*) AS bids FROM timed GROUP BY ALL
),
highs AS (
    SELECT auction, window_start, max(price) AS highest FROM timed WHERE price > 10000 GROUP BY ALL
)
SELECT counts.auction, counts.window_start, bids, highest
FROM counts
JOIN highs ON counts.auction = highs.auction AND counts.window_start = highs.window_start
