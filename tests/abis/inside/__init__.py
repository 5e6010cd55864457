"""Functions that run inside GDB; `tests.gdb.driver.call` calls them."""
