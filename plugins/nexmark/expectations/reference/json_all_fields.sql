-- json_all_fields: all fields of all bids.
SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
