-- check window_is_aligned: Windows are 10 s long and start at even seconds since the epoch.
SELECT * FROM output
WHERE window_end - window_start <> INTERVAL 10 SECOND
   OR epoch_ms(window_start) % 2000 <> 0
   OR window_start IS NULL OR window_end IS NULL;

-- check count_is_the_windows: num is the number of bids on the auction in [start, end).
SELECT output.auction, output.window_start, output.num, count(bid.auction) AS counted
FROM output
LEFT JOIN bid
  ON bid.auction = output.auction
 AND bid.dateTime >= output.window_start AND bid.dateTime < output.window_end
GROUP BY output.auction, output.window_start, output.num
HAVING output.num IS DISTINCT FROM count(bid.auction);

-- check no_auction_is_hotter: No other auction has more bids in the window.
WITH counts AS (
    SELECT output.window_start, bid.auction, count(*) AS num
    FROM (SELECT DISTINCT window_start, window_end FROM output) AS output
    JOIN bid ON bid.dateTime >= output.window_start AND bid.dateTime < output.window_end
    GROUP BY output.window_start, bid.auction
),
maxima AS (SELECT window_start, max(num) AS num FROM counts GROUP BY window_start)
SELECT output.*, maxima.num AS maximum
FROM output JOIN maxima ON maxima.window_start = output.window_start
WHERE output.num < maxima.num;

-- check every_tie_is_there: Each window has as many rows as auctions with its highest count.
WITH counts AS (
    SELECT output.window_start, output.num AS maximum, bid.auction, count(*) AS num
    FROM (SELECT window_start, window_end, max(num) AS num FROM output GROUP BY ALL) AS output
    JOIN bid ON bid.dateTime >= output.window_start AND bid.dateTime < output.window_end
    GROUP BY ALL
),
ties AS (
    SELECT window_start, count(*) FILTER (WHERE num = maximum) AS ties
    FROM counts GROUP BY window_start
)
SELECT output.window_start, count(*) AS rows, any_value(ties.ties) AS ties
FROM output JOIN ties ON ties.window_start = output.window_start
GROUP BY output.window_start
HAVING count(*) <> any_value(ties.ties);

-- check every_window_is_there: Every bid is in five windows that have a row, those before the first
-- event and after the last included.
WITH starts AS (
    SELECT DISTINCT epoch_ms(dateTime) // 2000 * 2000 - 2000 * back AS start
    FROM bid CROSS JOIN range(5) AS steps(back)
)
SELECT epoch_ms(start) AS window_start FROM starts
WHERE start NOT IN (SELECT epoch_ms(window_start) FROM output WHERE window_start IS NOT NULL);
