-- q12, processing time windows: how many bids each bidder made, by the engine's own clock.
-- Which window a bid falls in depends on when it was processed, so no reference can say it. What
-- can be said is each bidder's total over all windows; the output is folded to that before it is
-- compared, and its windows are checked by the invariants.
SELECT bidder, count(*) AS bid_count
FROM bid
GROUP BY bidder
