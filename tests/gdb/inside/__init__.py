"""What the tests run inside GDB: each function here is called by `tests.gdb.driver.call`."""
