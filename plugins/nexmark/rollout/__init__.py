"""A conf or a build given to stages of queries in turn, each judged, with a proven way back."""
