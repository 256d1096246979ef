-- check price_is_window_maximum: No bid of the same window of 10 s is higher; a bid on the instant
-- where a window ends may be the highest of the window that ends there instead.
WITH maxima AS (
    SELECT epoch_ms(dateTime) // 10000 AS tumble, max(price) AS price FROM bid GROUP BY tumble
)
SELECT output.*
FROM output
WHERE NOT EXISTS (
    FROM maxima
    WHERE maxima.price = output.price
      AND (maxima.tumble = epoch_ms(output.dateTime) // 10000
           OR (epoch_ms(output.dateTime) % 10000 = 0
               AND maxima.tumble = epoch_ms(output.dateTime) // 10000 - 1))
);

-- check every_window_has_a_highest_bid: Every window of 10 s with a bid has a row.
SELECT DISTINCT make_timestamp(epoch_ms(dateTime) // 10000 * 10000000) AS window_start
FROM bid
WHERE epoch_ms(dateTime) // 10000 NOT IN (
    SELECT epoch_ms(dateTime) // 10000 FROM output WHERE dateTime IS NOT NULL
);
