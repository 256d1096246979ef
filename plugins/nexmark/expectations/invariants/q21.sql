-- check channel_has_an_id: channel_id is neither NULL nor empty.
SELECT * FROM output WHERE coalesce(channel_id, '') = '';

-- check known_channel_has_its_id: Apple is 0, Google 1, Facebook 2 and Baidu 3, in any case.
SELECT output.*
FROM output
JOIN (VALUES ('apple', '0'), ('google', '1'), ('facebook', '2'), ('baidu', '3'))
  AS known(name, id)
  ON known.name = lower(output.channel)
WHERE output.channel_id IS DISTINCT FROM known.id;

-- check no_known_channel_is_dropped: Every bid of those four channels has a row.
WITH bids AS (
    SELECT lower(channel) AS channel, count(*) AS bids FROM bid
    WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
    GROUP BY ALL
),
rows AS (SELECT lower(channel) AS channel, count(*) AS rows FROM output GROUP BY ALL)
SELECT bids.channel, bids.bids, coalesce(rows.rows, 0) AS rows
FROM bids LEFT JOIN rows ON rows.channel = bids.channel
WHERE bids.bids > coalesce(rows.rows, 0);
