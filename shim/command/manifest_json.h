/*
 * JSON manifest files, taken as they are.
 */
#ifndef MANIFEST_JSON_H
#define MANIFEST_JSON_H

#include "command/manifest_yaml.h"

/*
 * The same of a JSON file, which holds one document after the other, or an
 * array of them.
 */
extern bool manifest_json_read(const struct manifest_file *file,
							   struct buffer *documents);

#endif							/* MANIFEST_JSON_H */
