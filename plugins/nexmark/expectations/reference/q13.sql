-- q13, bounded side input: every bid with the value of its key in a table of 10 000 lines 'i,i'.
-- The key is the auction id modulo 10 000, so every bid matches exactly one line.
WITH side_input AS (
    SELECT key, CAST(key AS VARCHAR) AS value
    FROM range(10000) AS lines(key)
)
SELECT bid.auction, bid.bidder, bid.price, bid.dateTime, side_input.value
FROM bid
JOIN side_input ON side_input.key = bid.auction % 10000
