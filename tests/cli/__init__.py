"""The command line, held against readelf where that has an answer."""
