"""Work with programs on other hosts: SSH, deployment, samplers, recordings."""
