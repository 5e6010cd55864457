"""The ways in which the plugin asks GDB for data and shows lines to the user."""
