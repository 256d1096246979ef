-- check auction_is_selected: Every auction id is a multiple of 123.
SELECT * FROM output WHERE auction % 123 <> 0 OR auction IS NULL;

-- check price_was_bid: The price is one that somebody bid on that auction.
SELECT * FROM output
WHERE NOT EXISTS (FROM bid WHERE bid.auction = output.auction AND bid.price = output.price);
