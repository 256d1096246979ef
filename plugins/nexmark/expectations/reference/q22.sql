-- q22, URL directories: the three parts of the URL's path that follow the host.
-- A part that the URL does not have is the empty text.
SELECT auction, bidder, price, channel,
       split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
       split_part(url, '/', 6) AS dir3
FROM bid
