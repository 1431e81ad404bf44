/*
 * The rows of a document: each resource read once, and kept.
 *
 * Everything read is entered in doc->known, so that no resource is read or
 * shown twice.
 */
#ifndef EA_DOCUMENT_ROWS_H
#define EA_DOCUMENT_ROWS_H

#include "read/document.h"

/* From here on the primary resources, and all that follow, are known. */
extern void ea_document_know(EaDocument *doc);

/* The resource, NULL if it has not been read. */
extern EaResource *ea_document_known(EaDocument *doc, EaEntity *entity,
									 const EaId *id);

/* It is to be read: true for the first call. */
extern bool ea_document_ask(EaDocument *doc, EaEntity *entity,
							const EaId *id);

/* One row more is kept; the memory of all of them is checked now and then. */
extern void ea_document_keep_row(EaDocument *doc);

/*
 * The resource of a row, made and included unless it is known; it goes to the
 * fresh ones then.  Throws when the answer has too many.
 */
extern EaResource *ea_document_include_row(EaDocument *doc, EaShape *shape,
										   EaResourceList *fresh,
										   TupleTableSlot *slot);

/* An error if two rows of a view, of those that are known, have one id. */
extern void ea_document_check_ids(EaDocument *doc);

/* The same for a row behind those of a page. */
extern void ea_document_row_beyond(EaDocument *doc, EaEntity *entity,
								   TupleTableSlot *slot);

/* Not known to be of one row: the view has another one. */
extern EA_NORETURN void ea_document_twice(const EaEntity *entity,
										  const EaId *id);

/* Count a target, and show it while there are less than so many. */
extern void ea_document_add_target(EaLinkage *linkage, int member,
								   const EaId *id, int keep);

/* Append the columns of a shape, for alias t<n>; and how many they are. */
extern void ea_document_columns(EaSqlBuf *b, const EaShape *shape,
								int alias);
extern int	ea_document_width(const EaShape *shape);

/* A callback for ea_sqlbuf_run(): keeps a primary resource. */
typedef struct EaRowSink
{
	EaDocument *doc;
	EaShape    *shape;
} EaRowSink;

extern void ea_document_row(void *sink, TupleTableSlot *slot);

#endif							/* EA_DOCUMENT_ROWS_H */
