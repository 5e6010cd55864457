"""The image of a file: which of its code others can call, and where its stubs and static branches lead."""
