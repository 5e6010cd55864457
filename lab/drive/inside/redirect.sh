# Runs a program for gdbserver, whose own standard streams are the connection.
# GDB's wheel sets this variable now and then, and the environment is on the program's stack.
unset DEBUGINFOD_URLS
exec "$@" </dev/null >output.txt
