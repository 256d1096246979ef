-- check window_is_aligned: Windows start at whole tens of seconds since the epoch.
SELECT * FROM output WHERE epoch_ms(window_start) % 10000 <> 0 OR window_start IS NULL;

-- check person_registered_in_window: The person of that id and name registered in the window.
SELECT * FROM output
WHERE NOT EXISTS (
    FROM person
    WHERE person.id = output.id AND person.name = output.name
      AND person.dateTime >= output.window_start
      AND person.dateTime < output.window_start + INTERVAL 10 SECOND
);

-- check person_sold_in_window: The person opened an auction in the window.
SELECT * FROM output
WHERE NOT EXISTS (
    FROM auction
    WHERE auction.seller = output.id
      AND auction.dateTime >= output.window_start
      AND auction.dateTime < output.window_start + INTERVAL 10 SECOND
);

-- check one_row_per_person_and_window: However many auctions, a person appears once a window.
SELECT id, window_start, count(*) AS rows
FROM output GROUP BY id, window_start HAVING count(*) > 1;
