-- q18, last bid: the latest bid of each bidder on each auction.
-- Of equal times the higher event number is the later one.
WITH ranked AS (
    SELECT auction, bidder, price, channel, url, dateTime, extra,
           row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, n DESC) AS place
    FROM bid
)
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM ranked
WHERE place = 1
