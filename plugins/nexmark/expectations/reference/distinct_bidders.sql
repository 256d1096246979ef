-- distinct_bidders: how many bidders each auction had in each window of 10 s.
SELECT auction, time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start,
       count(DISTINCT bidder) AS bidders
FROM bid
GROUP BY ALL
