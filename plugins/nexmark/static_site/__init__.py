"""The pages of the server as files, to be opened from a disk or served by any web server."""
