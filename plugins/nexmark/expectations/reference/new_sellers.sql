-- new_sellers: auctions that persons began in the window of 10 s in which they registered.
WITH sold AS (
    SELECT seller, time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start
    FROM auction
),
registered AS (
    SELECT id, time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start
    FROM person
)
SELECT sold.seller, sold.window_start, count(*) AS auctions
FROM sold
JOIN registered ON sold.seller = registered.id AND sold.window_start = registered.window_start
GROUP BY ALL
