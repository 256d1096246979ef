"""What the script imports from a file beside it, as the code of a company does."""

SCHEMA = "id long, country string, amount double, at timestamp"
