"""The commands below `sframe`."""
