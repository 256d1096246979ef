-- check conserves_bids: The windows of all bidders hold as many bids as there are.
WITH seen AS (SELECT sum(bid_count) AS bids FROM output),
sent AS (SELECT count(*) AS bids FROM bid)
SELECT seen.bids AS seen, sent.bids AS sent
FROM seen, sent
WHERE seen.bids IS DISTINCT FROM sent.bids;

-- check window_is_aligned: Windows are 10 s long, start at whole tens of seconds since the epoch
-- and hold at least one bid.
SELECT * FROM output
WHERE (endtime - starttime = INTERVAL 10 SECOND
       AND epoch_ms(starttime) % 10000 = 0
       AND bid_count >= 1) IS NOT TRUE;

-- check one_row_per_bidder_and_window: A bidder appears once a window.
SELECT bidder, starttime, count(*) AS rows
FROM output GROUP BY bidder, starttime HAVING count(*) > 1;

-- check window_is_of_processing_time: No window lies in the time of the events or is yet to come:
-- the clock is the engine's, which runs after the events were recorded.
SELECT output.*
FROM output, (SELECT min(dateTime) AS first, max(dateTime) AS last FROM bid) AS sent
WHERE (output.endtime > sent.first AND output.starttime <= sent.last)
   OR output.starttime > CAST(now() AS TIMESTAMP);
