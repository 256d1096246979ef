-- q5, hot items: per window of 10 s that slides by 2 s, the auctions with the most bids.
-- All ties of the maximum. Windows are [start, end), aligned to the epoch; one that begins before
-- the first event, or ends after the last, counts as well.
WITH slide AS (
    SELECT auction, time_bucket(INTERVAL 2 SECOND, dateTime, TIMESTAMP '1970-01-01') AS latest_start
    FROM bid
),
windowed AS (
    SELECT auction, latest_start - to_seconds(2 * back) AS window_start
    FROM slide
    CROSS JOIN range(5) AS steps(back)
),
counted AS (
    SELECT auction, window_start, count(*) AS num
    FROM windowed
    GROUP BY auction, window_start
),
hottest AS (
    SELECT window_start, max(num) AS num
    FROM counted
    GROUP BY window_start
)
SELECT counted.auction, counted.num, counted.window_start,
       counted.window_start + INTERVAL 10 SECOND AS window_end
FROM counted
JOIN hottest
  ON hottest.window_start = counted.window_start
 AND hottest.num = counted.num
