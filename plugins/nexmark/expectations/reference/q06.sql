-- q6, average selling price by seller: the mean of the last 10 winning bids of each seller.
-- The original text says "last 10", its SQL says 11 (10 PRECEDING AND CURRENT ROW): the contract
-- takes 10. Winning is as in q9: highest price, then the earlier bid, within the auction's time,
-- whatever the reserve. "Last" is by the time of the winning bid, then by auction id. One final row
-- per seller. The mean is truncated, not rounded.
WITH ranked AS (
    SELECT auction.id, auction.seller, bid.price, bid.dateTime,
           row_number() OVER (
               PARTITION BY auction.id ORDER BY bid.price DESC, bid.dateTime, bid.n
           ) AS place
    FROM auction
    JOIN bid ON bid.auction = auction.id
    WHERE bid.dateTime >= auction.dateTime
      AND bid.dateTime <= auction.expires
),
won AS (
    SELECT seller, price,
           row_number() OVER (PARTITION BY seller ORDER BY dateTime DESC, id DESC) AS recency
    FROM ranked
    WHERE place = 1
)
SELECT seller, CAST(sum(price) // count(*) AS BIGINT) AS avg_price
FROM won
WHERE recency <= 10
GROUP BY seller
