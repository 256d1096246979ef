"""What each page shows, as frozen objects: rows of the store in, no HTML and no HTTP out."""
