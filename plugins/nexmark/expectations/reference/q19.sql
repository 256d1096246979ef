-- q19, top 10: the ten highest bids of each auction, ranked.
-- Of equal prices the lower event number ranks first, which decides the tenth place as well.
WITH ranked AS (
    SELECT auction, bidder, price, channel, url, dateTime, extra,
           row_number() OVER (PARTITION BY auction ORDER BY price DESC, n) AS rank_number
    FROM bid
)
SELECT auction, bidder, price, channel, url, dateTime, extra, rank_number
FROM ranked
WHERE rank_number <= 10
