# Runs a program for gdbserver, whose own standard streams are the connection.
# GDB's wheel adds a variable for debuginfod now and then, and the environment is on the program's stack.
exec env -i "$@" </dev/null >output.txt
