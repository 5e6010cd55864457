"""What may go wrong in a process while somebody looks at its stack; in every debugger, the session goes on."""
