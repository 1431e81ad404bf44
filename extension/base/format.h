/*
 * Formatted texts of functions that take a format and its values.
 */
#ifndef EA_FORMAT_H
#define EA_FORMAT_H

/* As psprintf(). */
extern char *ea_format(const char *fmt, va_list args)
			pg_attribute_printf(1, 0);

#endif							/* EA_FORMAT_H */
