"""What is asked of the machine: whole files, workers that end, the network, a cluster."""
