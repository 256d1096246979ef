-- q1, currency conversion: every bid with its price times 0.908.
-- The product is exact: a whole number times 0.908 has three decimals, nothing is rounded.
SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(23, 3)) AS price, dateTime, extra
FROM bid
