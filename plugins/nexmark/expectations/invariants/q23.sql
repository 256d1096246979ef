-- check bidder_is_person_and_seller: The three streams meet in one person.
SELECT bidder, person_id, seller
FROM output
WHERE bidder IS DISTINCT FROM person_id OR bidder IS DISTINCT FROM seller;

-- check rows_are_bids_times_auctions: A bidder's rows are as many as the bids of that person times
-- the auctions of that person.
WITH bids AS (SELECT bidder AS id, count(*) AS bids FROM bid GROUP BY bidder),
auctions AS (SELECT seller AS id, count(*) AS auctions FROM auction GROUP BY seller),
rows AS (SELECT bidder AS id, count(*) AS rows FROM output GROUP BY bidder)
SELECT person.id, bids, auctions, coalesce(rows, 0) AS rows
FROM person
JOIN bids ON bids.id = person.id
JOIN auctions ON auctions.id = person.id
LEFT JOIN rows ON rows.id = person.id
WHERE coalesce(rows, 0) <> bids * auctions;
