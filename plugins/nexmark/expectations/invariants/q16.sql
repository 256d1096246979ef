-- check one_row_per_channel_and_day: No channel appears twice on a day.
SELECT channel, day, count(*) AS rows FROM output GROUP BY channel, day HAVING count(*) > 1;

-- check minute_has_the_last_bid: minute is that of the channel's last bid of the day.
WITH last AS (
    SELECT channel, CAST(dateTime AS DATE) AS day, max(dateTime) AS dateTime
    FROM bid GROUP BY channel, CAST(dateTime AS DATE)
)
SELECT output.channel, output.day, output.minute, last.dateTime
FROM output
LEFT JOIN last ON last.channel = output.channel AND CAST(last.day AS VARCHAR) = output.day
WHERE output.minute IS DISTINCT FROM substr(CAST(last.dateTime AS VARCHAR), 12, 5);

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
