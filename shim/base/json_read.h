/*
 * The only way for JSON to be read in the shim.
 *
 * jansson calls itself for each level of nesting, up to 2048, and so does what
 * goes over a tree of its afterwards; a thread's stack bears no such thing.
 * So the depth is measured first, without recursion.  scripts/check/layers
 * holds that nobody else calls jansson's readers.
 */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* The deepest nesting of objects and arrays, as the extension has it. */
#define JSON_DEPTH 64

/* Of a list of documents, each of which may be as deep as that. */
#define JSON_LIST_DEPTH (JSON_DEPTH + 1)

/*
 * Whether the text, or with JSON_DISABLE_EOF_CHECK the value that it begins
 * with, is nested no deeper than "most"; if it is, *error says where.  All
 * that follows the first fault of the syntax may count in any way: no parser
 * gets there.
 */
extern bool json_depth_is_fine(const char *text, size_t length, size_t flags,
							   int most, json_error_t *error);

/*
 * json_loadb() of a text that is nested no deeper than "most".  NULL with the
 * reason in *error, which may be NULL.
 */
extern json_t *json_read(const char *text, size_t length, size_t flags,
						 int most, json_error_t *error);

/*
 * The same for a file of at most JSON_FILE_MAX bytes, nested no deeper than
 * JSON_DEPTH.  If it cannot be read, the error's line is -1.
 */
#define JSON_FILE_MAX (1024 * 1024)
extern json_t *json_read_file(const char *path, size_t flags,
							  json_error_t *error);

#endif							/* JSON_READ_H */
