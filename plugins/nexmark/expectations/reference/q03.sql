-- q3, local item suggestion: who sells in category 10 in Oregon, Idaho or California.
-- No bound in time: an auction matches its seller whichever of the two comes first.
SELECT person.name, person.city, person.state, auction.id
FROM auction
JOIN person ON person.id = auction.seller
WHERE auction.category = 10
  AND person.state IN ('OR', 'ID', 'CA')
