-- q2, selection: bids for every 123rd auction id.
SELECT auction, price
FROM bid
WHERE auction % 123 = 0
