-- check part_is_one_directory: No part is NULL or contains a slash.
SELECT * FROM output
WHERE (contains(dir1, '/') OR contains(dir2, '/') OR contains(dir3, '/')) IS NOT FALSE;

-- check parts_make_up_a_url: The three parts in a row are the path of one of the bids' URLs.
SELECT DISTINCT output.dir1, output.dir2, output.dir3
FROM output
WHERE [dir1, dir2, dir3] NOT IN (
    SELECT DISTINCT list_resize(string_split(url, '/')[4:6], 3, '') FROM bid
);

-- check conserves_bids: There are as many rows as bids, with the same sum of prices.
WITH seen AS (SELECT count(*) AS bids, sum(price) AS price FROM output),
sent AS (SELECT count(*) AS bids, sum(price) AS price FROM bid)
SELECT seen, sent FROM seen, sent WHERE seen IS DISTINCT FROM sent;
