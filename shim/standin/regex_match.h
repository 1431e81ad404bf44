/*
 * Does a text have what a regular expression describes?
 */
#ifndef REGEX_MATCH_H
#define REGEX_MATCH_H

#include "standin/regex_parse.h"

/*
 * Whether any part of the text does.  True as well if that is too much work
 * to find out.
 */
extern bool standin_regex_matches(const Regex *regex, const pg_wchar *text,
								  int length);

#endif							/* REGEX_MATCH_H */
