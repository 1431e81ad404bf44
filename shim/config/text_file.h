/*
 * Small files that settings name.
 */
#ifndef TEXT_FILE_H
#define TEXT_FILE_H

/*
 * The text of a file, to be freed; one newline at its end is not part of it.
 * Returns NULL after writing a line to stderr, in which "origin" is what
 * names the file.
 */
extern char *text_file_read(const char *origin, const char *path);

#endif							/* TEXT_FILE_H */
