-- check one_row_per_auction_and_day: No auction appears twice on a day.
SELECT auction, day, count(*) AS rows FROM output GROUP BY auction, day HAVING count(*) > 1;

-- check ranks_add_up: Each bid has one rank: the three counts of bids add up to the total.
SELECT * FROM output
WHERE total_bids IS DISTINCT FROM rank1_bids + rank2_bids + rank3_bids;

-- check mean_is_truncated: The mean times the count reaches the sum to within less than the count.
SELECT * FROM output
WHERE (sum_price - avg_price * total_bids >= 0
       AND sum_price - avg_price * total_bids < total_bids) IS NOT TRUE;

-- check prices_are_ordered: The lowest price is no more than the mean, the mean than the highest.
SELECT * FROM output WHERE (min_price <= avg_price AND avg_price <= max_price) IS NOT TRUE;

-- check conserves_bids: All rows together count as many bids as there are, and the same sum of
-- prices.
WITH seen AS (SELECT sum(total_bids) AS bids, sum(sum_price) AS price FROM output),
sent AS (SELECT CAST(count(*) AS HUGEINT) AS bids, sum(price) AS price FROM bid)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
