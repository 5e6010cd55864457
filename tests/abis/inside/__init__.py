"""What these tests run inside GDB; `tests.gdb.driver.call` calls it."""
