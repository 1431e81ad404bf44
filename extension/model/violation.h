/*
 * A violated constraint and the field it speaks of.
 */
#ifndef EA_VIOLATION_H
#define EA_VIOLATION_H

#include "model/catalog.h"
#include "request/request.h"

typedef struct EaViolation
{
	bool		known;			/* it is of a table of an entity's, or leads
								 * to one: else nothing else is set */
	bool		declared;		/* the service made it */
	bool		referred;		/* a foreign key that others lead here by */
	EaField    *field;			/* NULL: it is about several, or about none */
	bool		id;				/* the id is to be unique */
} EaViolation;

/*
 * The subject of an error of class 23, in terms of the write.  The system
 * catalogs are asked, so the transaction must be able to.
 */
extern void ea_violation_find(EaRequest *req, const ErrorData *edata,
							  EaViolation *found);

/*
 * The same of an index of the entity's table that has no room, which most
 * kinds of index name in the message alone.
 */
extern void ea_violation_find_index(EaRequest *req, const ErrorData *edata,
									EaViolation *found);

/*
 * The field of a column that the message says is generated; NULL if it is none
 * of the entity's table.
 */
/* No partition of the table that is written takes the row. */
extern bool ea_violation_no_partition(EaRequest *req, const ErrorData *edata);

extern EaField *ea_violation_unwritable(EaRequest *req,
										const ErrorData *edata);

#endif							/* EA_VIOLATION_H */
