-- check ranks_have_no_gaps: The rows of an auction are ranked 1, 2, .. up to their number, which is
-- ten or that of the bids if there are fewer.
WITH ranked AS (
    SELECT auction, list(rank_number ORDER BY rank_number) AS ranks FROM output GROUP BY auction
),
bids AS (SELECT auction, count(*) AS bids FROM bid GROUP BY auction)
SELECT bids.auction, bids.bids, ranked.ranks
FROM bids LEFT JOIN ranked ON ranked.auction = bids.auction
WHERE ranked.ranks IS DISTINCT FROM range(1, least(bids.bids, 10) + 1);

-- check price_does_not_increase: A bid is no higher than the one ranked before it.
WITH following AS (
    SELECT auction, rank_number, price,
           lag(price) OVER (PARTITION BY auction ORDER BY rank_number) AS previous
    FROM output
)
SELECT * FROM following WHERE price > previous;

-- check no_bid_left_out_is_higher: No bid above the lowest one shown is missing.
WITH shown AS (
    SELECT auction, min(price) AS lowest, count(*) AS rows FROM output GROUP BY auction
)
SELECT shown.auction, shown.lowest, shown.rows, count(*) AS higher_or_equal
FROM shown
JOIN bid ON bid.auction = shown.auction AND bid.price > shown.lowest
GROUP BY ALL
HAVING count(*) >= shown.rows;

-- check row_is_a_bid: Every row is one of the bids, and none is used twice.
WITH used AS (
    SELECT auction, bidder, price, channel, url, dateTime, extra, count(*) AS used
    FROM output GROUP BY ALL
)
SELECT used.*, count(bid.auction) AS bids
FROM used
LEFT JOIN bid
  ON bid.auction = used.auction AND bid.bidder = used.bidder AND bid.price = used.price
 AND bid.channel = used.channel AND bid.url = used.url
 AND bid.dateTime = used.dateTime AND bid.extra = used.extra
GROUP BY ALL
HAVING used.used > count(bid.auction);
