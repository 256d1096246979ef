-- q4, average price for a category: the mean, over its auctions, of the highest valid bid.
-- A bid is valid from the auction's start to its expiry, both included; the reserve does not
-- matter. An auction without a valid bid does not count. The mean is truncated, not rounded.
WITH closing AS (
    SELECT auction.id, auction.category, max(bid.price) AS price
    FROM auction
    JOIN bid ON bid.auction = auction.id
    WHERE bid.dateTime >= auction.dateTime
      AND bid.dateTime <= auction.expires
    GROUP BY auction.id, auction.category
)
SELECT category, CAST(sum(price) // count(*) AS BIGINT) AS avg_price
FROM closing
GROUP BY category
