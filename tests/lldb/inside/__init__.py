"""What the tests run inside LLDB: each function here is called by `tests.lldb.driver.call`."""
