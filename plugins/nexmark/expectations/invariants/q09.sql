-- check one_row_per_auction: No auction appears twice.
SELECT id, count(*) AS rows FROM output GROUP BY id HAVING count(*) > 1;

-- check bid_is_on_the_auction: The winning bid is a bid on this auction.
SELECT id, output.auction, output.bidder, output.price, bid_dateTime
FROM output
WHERE id IS DISTINCT FROM output.auction
   OR NOT EXISTS (
    FROM bid
    WHERE bid.auction = output.auction AND bid.bidder = output.bidder
      AND bid.price = output.price AND bid.dateTime = output.bid_dateTime
      AND bid.extra = output.bid_extra
);

-- check bid_is_in_time: The bid lies between the auction's start and its expiry, both included.
SELECT id, dateTime, bid_dateTime, expires
FROM output
WHERE bid_dateTime BETWEEN dateTime AND expires IS NOT TRUE;

-- check no_valid_bid_is_better: No bid in the auction's time is higher, or as high and earlier.
SELECT DISTINCT output.id, output.price, output.bid_dateTime
FROM output
JOIN bid ON bid.auction = output.id
        AND bid.dateTime BETWEEN output.dateTime AND output.expires
WHERE bid.price > output.price
   OR (bid.price = output.price AND bid.dateTime < output.bid_dateTime);
