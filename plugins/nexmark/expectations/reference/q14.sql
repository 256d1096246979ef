-- q14, calculation: bids of a middling price in another currency, with the time of day and the
-- number of letters c in extra. Both price bounds are excluded. Hours 8 to 18 are day, 20 to 6 are
-- night, 7 and 19 neither (UTC).
WITH converted AS (
    SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(23, 3)) AS price, dateTime, extra,
           hour(dateTime) AS hour
    FROM bid
)
SELECT auction, bidder, price,
       CASE
           WHEN hour BETWEEN 8 AND 18 THEN 'dayTime'
           WHEN hour <= 6 OR hour >= 20 THEN 'nightTime'
           ELSE 'otherTime'
       END AS bidTimeType,
       dateTime, extra,
       CAST(len(list_filter(string_split(extra, ''), lambda letter: letter = 'c')) AS BIGINT)
           AS c_counts
FROM converted
WHERE price > 1000000
  AND price < 50000000
