-- long_window: per slot of auctions, bids and their value in windows of 1 h that slide by 1 minute.
WITH slide AS (
    SELECT auction % 100 AS slot, price,
           time_bucket(INTERVAL 1 MINUTE, dateTime, TIMESTAMP '1970-01-01') AS latest_start
    FROM bid
),
per_minute AS (
    SELECT slot, latest_start, count(*) AS bids, sum(price) AS total
    FROM slide
    GROUP BY slot, latest_start
)
SELECT slot, latest_start - to_minutes(back) AS window_start,
       latest_start - to_minutes(back) + INTERVAL 1 HOUR AS window_end,
       sum(bids) AS bids, sum(total) AS total
FROM per_minute
CROSS JOIN range(60) AS steps(back)
GROUP BY ALL
