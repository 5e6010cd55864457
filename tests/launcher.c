/*
 * Replaces itself by a debugger, as the program of its wheel does, which first starts a Python.  The header of
 * `tests/launchers.py`, which is included before this file, has what that program does:
 *
 * PROGRAM: what it executes; WORDS: the words of the command line before those of the user;
 * VARIABLES: what it adds to the environment, each as the text before the value that is there, the text after it, and
 * whether a value that is there is left as it is.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	const char *before;
	const char *after;
	int takes_old; /* The value is put between the texts. */
	int keeps_old;
} variables[] = {VARIABLES};

static const char *const words[] = {WORDS};

enum { COUNT = sizeof(words) / sizeof(*words) };

static void set_variable(int number)
{
	const char *name = variables[number].name, *before = variables[number].before, *after = variables[number].after;
	const char *old = getenv(name);
	char *value;

	if (old && variables[number].keeps_old)
		return;
	if (!variables[number].takes_old || !old || !*old)
		old = "";
	value = malloc(strlen(before) + strlen(old) + strlen(after) + 2);
	if (!value)
		abort();
	sprintf(value, "%s%s%s%s", before, old, *old ? ":" : "", after);
	setenv(name, value, 1);
}

int main(int argc, char **argv)
{
	char **arguments = malloc((COUNT + argc) * sizeof(*arguments));

	if (!arguments)
		abort();
	for (unsigned int number = 0; number < sizeof(variables) / sizeof(*variables); number++)
		set_variable(number);
	/* Python ignores these signals, and a program inherits that. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	memcpy(arguments, words, sizeof(words));
	memcpy(arguments + COUNT, argv + 1, argc * sizeof(*arguments)); /* with the null pointer at its end */
	execv(PROGRAM, arguments);
	perror(PROGRAM);
	return 127;
}
