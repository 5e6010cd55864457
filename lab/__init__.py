"""Studies, campaigns and oracles: README.md says which question each answers."""
