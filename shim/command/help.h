/*
 * The commands and their options: what --help tells, and which of them a
 * mistyped word was likely meant to be.  The man page and the completions of
 * shells are made of what --help prints (scripts/build/shim-pages).
 */
#ifndef HELP_H
#define HELP_H

#include <stdio.h>

/* Prints all that there is, or one command; 0 or, on stderr, 2. */
extern int	help_all(FILE *stream);
extern int	help_command(const char *command);

/* Is "--help" or "-h" among the arguments? */
extern int	help_is_asked(int argc, char **argv);

/*
 * Says that this is no command, or no option of a command (unknown, or
 * without its value), and what it was likely meant to be.  Returns 2.
 */
extern int	help_unknown_command(const char *word);
extern int	help_unknown_option(const char *command, const char *argument);

#endif							/* HELP_H */
