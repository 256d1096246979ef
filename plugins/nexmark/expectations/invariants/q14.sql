-- check price_is_in_range: The converted price lies between 1 and 50 million, both excluded.
SELECT auction, bidder, price FROM output WHERE (price > 1000000 AND price < 50000000) IS NOT TRUE;

-- check time_of_day_is_right: dayTime from 8:00 to 18:59, otherTime at 7 and 19, else nightTime.
SELECT auction, bidder, dateTime, bidTimeType
FROM output
WHERE bidTimeType IS DISTINCT FROM CASE
    WHEN CAST(dateTime AS TIME) >= TIME '08:00:00' AND CAST(dateTime AS TIME) < TIME '19:00:00'
        THEN 'dayTime'
    WHEN CAST(dateTime AS TIME) >= TIME '07:00:00' AND CAST(dateTime AS TIME) < TIME '20:00:00'
        THEN 'otherTime'
    ELSE 'nightTime'
END;

-- check letters_are_counted: c_counts is the number of small letters c in extra.
SELECT auction, bidder, extra, c_counts
FROM output
WHERE c_counts IS DISTINCT FROM length(extra) - length(replace(extra, 'c', ''));
