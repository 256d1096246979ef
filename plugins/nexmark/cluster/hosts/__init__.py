"""Programs on other hosts: SSH, deployment, samplers, recordings."""
