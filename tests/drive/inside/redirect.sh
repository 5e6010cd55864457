# Runs a program for gdbserver, whose own standard streams are the connection.
exec "$@" </dev/null >output.txt
