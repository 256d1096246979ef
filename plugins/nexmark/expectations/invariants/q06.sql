-- check one_row_per_seller: No seller appears twice.
SELECT seller, count(*) AS rows FROM output GROUP BY seller HAVING count(*) > 1;

-- check mean_is_within_winning_prices: The mean lies between the lowest and the highest of the
-- prices at which the seller's auctions closed.
WITH closing AS (
    SELECT auction.seller, auction.id, max(bid.price) AS price
    FROM auction
    JOIN bid ON bid.auction = auction.id
            AND bid.dateTime BETWEEN auction.dateTime AND auction.expires
    GROUP BY auction.seller, auction.id
),
bounds AS (
    SELECT seller, min(price) AS lowest, max(price) AS highest FROM closing GROUP BY seller
)
SELECT output.*, bounds.lowest, bounds.highest
FROM output LEFT JOIN bounds ON bounds.seller = output.seller
WHERE output.avg_price BETWEEN bounds.lowest AND bounds.highest IS NOT TRUE;

-- check every_seller_is_there: Every seller of an auction with a valid bid has a row.
SELECT DISTINCT auction.seller
FROM auction
JOIN bid ON bid.auction = auction.id
        AND bid.dateTime BETWEEN auction.dateTime AND auction.expires
WHERE auction.seller NOT IN (SELECT seller FROM output WHERE seller IS NOT NULL);
