-- check one_row_per_category: No category appears twice.
SELECT category, count(*) AS rows FROM output GROUP BY category HAVING count(*) > 1;

-- check mean_is_within_prices: The mean lies between the lowest and the highest price bid on an
-- auction of the category.
WITH bounds AS (
    SELECT auction.category, min(bid.price) AS lowest, max(bid.price) AS highest
    FROM auction JOIN bid ON bid.auction = auction.id
    GROUP BY auction.category
)
SELECT output.*, bounds.lowest, bounds.highest
FROM output LEFT JOIN bounds ON bounds.category = output.category
WHERE output.avg_price BETWEEN bounds.lowest AND bounds.highest IS NOT TRUE;
