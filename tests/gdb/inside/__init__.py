"""Functions that the tests run inside GDB; `tests.gdb.driver.call` calls them."""
