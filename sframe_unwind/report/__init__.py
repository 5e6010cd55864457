"""Output as text and JSON: dumps, lookups, stacks, comparisons and status."""
