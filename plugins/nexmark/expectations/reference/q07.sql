-- q7, highest bid: per window of 10 s, the bids with the highest price (all ties).
-- The maximum is taken over [start, end). The join back to the bids includes the window's end, as in
-- the original SQL: a bid at exactly that instant and of that price belongs to the window as well.
WITH highest AS (
    SELECT time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01')
               + INTERVAL 10 SECOND AS window_end,
           max(price) AS price
    FROM bid
    GROUP BY window_end
)
SELECT bid.auction, bid.bidder, bid.price, bid.dateTime, bid.extra
FROM bid
JOIN highest
  ON highest.price = bid.price
 AND bid.dateTime >= highest.window_end - INTERVAL 10 SECOND
 AND bid.dateTime <= highest.window_end
