/*
 * Texts of others in YAML that is written by hand.
 */
#ifndef INTROSPECT_YAML_H
#define INTROSPECT_YAML_H

#include "base/buffer.h"

/*
 * A scalar that is read back as this text, wherever it stands, on one line;
 * plain if that can be, else in quotation marks.  Valid UTF-8 is assumed.
 */
extern void yaml_scalar(struct buffer *out, const char *text);

/*
 * The same of a text that may be of any bytes and length: what is no UTF-8
 * becomes a question mark, and a long one ends in three dots.
 */
extern void yaml_description(struct buffer *out, const char *text);

#endif							/* INTROSPECT_YAML_H */
