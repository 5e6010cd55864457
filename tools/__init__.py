"""What building and testing need beyond the package itself."""
