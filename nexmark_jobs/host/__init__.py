"""Programs that run on the hosts of a cluster: one file each, standard library only."""
