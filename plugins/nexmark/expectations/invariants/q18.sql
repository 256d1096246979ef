-- check one_row_per_bidder_and_auction: No bidder appears twice on an auction.
SELECT bidder, auction, count(*) AS rows
FROM output GROUP BY bidder, auction HAVING count(*) > 1;

-- check no_bid_is_later: The bidder made no later bid on the auction.
SELECT DISTINCT output.bidder, output.auction, output.dateTime
FROM output
JOIN bid ON bid.bidder = output.bidder AND bid.auction = output.auction
WHERE bid.dateTime > output.dateTime;

-- check row_is_a_bid: Every row is one of the bids.
SELECT * FROM output
WHERE NOT EXISTS (
    FROM bid
    WHERE bid.auction = output.auction AND bid.bidder = output.bidder
      AND bid.price = output.price AND bid.channel = output.channel AND bid.url = output.url
      AND bid.dateTime = output.dateTime AND bid.extra = output.extra
);

-- check every_pair_is_there: Every bidder and auction with a bid has a row.
SELECT bidder, auction FROM bid
EXCEPT
SELECT bidder, auction FROM output;
