"""The judge: right and wrong rows, planted, changed and random, and the verdicts on them."""
