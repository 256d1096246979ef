-- q21, add channel id: four known channels have a fixed id, others carry it in the URL.
-- A bid whose URL names no id is dropped; an empty one counts as none.
WITH identified AS (
    SELECT auction, bidder, price, channel,
           CASE lower(channel)
               WHEN 'apple' THEN '0'
               WHEN 'google' THEN '1'
               WHEN 'facebook' THEN '2'
               WHEN 'baidu' THEN '3'
               ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
           END AS channel_id
    FROM bid
)
SELECT auction, bidder, price, channel, channel_id
FROM identified
WHERE channel_id IS NOT NULL
