-- reused_view: per auction and window of 10 s, a row with its bids and a row with their value.
WITH totals AS (
    SELECT auction, time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start,
           count(*) AS bids, sum(price) AS "value"
    FROM bid
    GROUP BY ALL
)
SELECT auction, window_start, 'bids' AS kind, bids AS amount FROM totals
UNION ALL
SELECT auction, window_start, 'value', "value" FROM totals
