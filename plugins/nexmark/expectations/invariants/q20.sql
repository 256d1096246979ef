-- check category_is_10: Only bids on auctions of category 10.
SELECT auction, bidder, price, category FROM output WHERE category IS DISTINCT FROM 10;

-- check details_are_the_auctions: The details are those of the auction that the bid is on.
SELECT output.auction, output.seller, output.auction_dateTime, output.itemName
FROM output
WHERE NOT EXISTS (
    FROM auction
    WHERE auction.id = output.auction
      AND auction.seller = output.seller
      AND auction.dateTime = output.auction_dateTime
      AND auction.expires = output.expires
      AND auction.itemName = output.itemName
);

-- check no_bid_is_left_out: Every bid on an auction of category 10 has a row, in its time or not.
WITH bids AS (
    SELECT auction, count(*) AS bids FROM bid
    WHERE auction IN (SELECT id FROM auction WHERE category = 10)
    GROUP BY auction
),
rows AS (SELECT auction, count(*) AS rows FROM output GROUP BY auction)
SELECT bids.auction, bids.bids, coalesce(rows.rows, 0) AS rows
FROM bids LEFT JOIN rows ON rows.auction = bids.auction
WHERE bids.bids > coalesce(rows.rows, 0);
