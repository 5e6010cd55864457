"""Functions that the tests run inside LLDB; `tests.lldb.driver.call` calls them."""
