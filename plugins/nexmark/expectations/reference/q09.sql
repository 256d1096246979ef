-- q9, winning bids: each auction with its highest valid bid.
-- A bid is valid from the auction's start to its expiry, both included. Of equal prices the earlier
-- bid wins, of equal times the lower event number. An auction without a valid bid has no row.
WITH ranked AS (
    SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve,
           auction.dateTime, auction.expires, auction.seller, auction.category, auction.extra,
           bid.auction, bid.bidder, bid.price,
           bid.dateTime AS bid_dateTime, bid.extra AS bid_extra,
           row_number() OVER (
               PARTITION BY auction.id ORDER BY bid.price DESC, bid.dateTime, bid.n
           ) AS place
    FROM auction
    JOIN bid ON bid.auction = auction.id
    WHERE bid.dateTime >= auction.dateTime
      AND bid.dateTime <= auction.expires
)
SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra,
       auction, bidder, price, bid_dateTime, bid_extra
FROM ranked
WHERE place = 1
