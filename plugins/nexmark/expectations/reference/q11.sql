-- q11, user sessions: how many bids each bidder made in each session.
-- A session ends 10 s after its last bid. A bid exactly 10 s after the last one still belongs to
-- the session (Spark and Flink merge windows that touch): only a longer gap starts a new one.
WITH spaced AS (
    SELECT bidder, dateTime,
           lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) AS previous
    FROM bid
),
numbered AS (
    SELECT bidder, dateTime,
           count(*) FILTER (WHERE previous IS NULL OR dateTime > previous + INTERVAL 10 SECOND)
               OVER (PARTITION BY bidder ORDER BY dateTime) AS session
    FROM spaced
)
SELECT bidder, count(*) AS bid_count,
       min(dateTime) AS starttime, max(dateTime) + INTERVAL 10 SECOND AS endtime
FROM numbered
GROUP BY bidder, session
