-- q8, monitor new users: who registered and opened an auction in the same window of 10 s.
-- One row per person and window, however many auctions.
WITH newcomer AS (
    SELECT DISTINCT id, name,
           time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start
    FROM person
),
opener AS (
    SELECT DISTINCT seller,
           time_bucket(INTERVAL 10 SECOND, dateTime, TIMESTAMP '1970-01-01') AS window_start
    FROM auction
)
SELECT newcomer.id, newcomer.name, newcomer.window_start
FROM newcomer
JOIN opener
  ON opener.seller = newcomer.id
 AND opener.window_start = newcomer.window_start
