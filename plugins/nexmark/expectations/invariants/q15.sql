-- check one_row_per_day: No day appears twice.
SELECT day, count(*) AS rows FROM output GROUP BY day HAVING count(*) > 1;

-- check ranks_add_up: Each bid has one rank: the three counts of bids add up to the total.
SELECT * FROM output
WHERE total_bids IS DISTINCT FROM rank1_bids + rank2_bids + rank3_bids;

-- check distinct_counts_fit: The distinct bidders and auctions of a rank are no more than its bids,
-- those in all no fewer than of any rank and no more than of the three together.
SELECT * FROM output
WHERE (total_bidders BETWEEN greatest(rank1_bidders, rank2_bidders, rank3_bidders)
                         AND rank1_bidders + rank2_bidders + rank3_bidders
       AND total_auctions BETWEEN greatest(rank1_auctions, rank2_auctions, rank3_auctions)
                              AND rank1_auctions + rank2_auctions + rank3_auctions
       AND greatest(total_bidders, total_auctions) <= total_bids
       AND greatest(rank1_bidders, rank1_auctions) <= rank1_bids
       AND greatest(rank2_bidders, rank2_auctions) <= rank2_bids
       AND greatest(rank3_bidders, rank3_auctions) <= rank3_bids) IS NOT TRUE;

-- check conserves_bids: All rows together count as many bids as there are.
WITH seen AS (SELECT sum(total_bids) AS bids FROM output),
sent AS (SELECT count(*) AS bids FROM bid)
SELECT seen.bids AS seen, sent.bids AS sent
FROM seen, sent
WHERE seen.bids IS DISTINCT FROM sent.bids;
