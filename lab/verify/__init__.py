"""All samples, verified."""
