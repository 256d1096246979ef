-- q20, expand bid: bids on auctions of category 10, with the auction's details.
-- No bound in time: bids before the auction's start or after its expiry count as well.
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url,
       bid.dateTime AS bid_dateTime, bid.extra AS bid_extra,
       auction.itemName, auction.description, auction.initialBid, auction.reserve,
       auction.dateTime AS auction_dateTime, auction.expires, auction.seller, auction.category,
       auction.extra AS auction_extra
FROM bid
JOIN auction ON auction.id = bid.auction
WHERE auction.category = 10
