-- check state_is_local: The seller lives in Oregon, Idaho or California.
SELECT * FROM output WHERE coalesce(state, '') NOT IN ('OR', 'ID', 'CA');

-- check auction_is_in_category: The auction is one of category 10.
SELECT * FROM output
WHERE NOT EXISTS (FROM auction WHERE auction.id = output.id AND auction.category = 10);

-- check one_row_per_auction: No auction appears twice.
SELECT id, count(*) AS rows FROM output GROUP BY id HAVING count(*) > 1;
