"""What nights leave behind: what stays, why, and how the rest goes."""
