-- json_two_fields: two fields of all bids.
SELECT auction, price FROM bid
