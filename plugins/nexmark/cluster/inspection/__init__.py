"""The requirements of a cluster's hosts, and a report of what is missing."""
