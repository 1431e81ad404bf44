/*
 * Statements as the role of an application whose text is the service's own:
 * over tables of both sides, or with locks on rows that are only looked up.
 */
#ifndef EA_OWN_TEXT_H
#define EA_OWN_TEXT_H

#include "executor/spi.h"

typedef struct EaOwnText
{
	bool		of_both;		/* names tables of the service, too */
	int			ntypes;
	const Oid  *types;			/* of its parameters */

	/* while it is analyzed: whose turn it is */
	Oid			user;
	int			security;
} EaOwnText;

/*
 * Prepare it, or NULL as SPI does.  It is analyzed anew whenever its plan has
 * become invalid, by what ea_own_text_keep() is given last: that has to live
 * as long as the plan.
 */
extern SPIPlanPtr ea_own_text_prepare(EaOwnText *own, const char *sql,
									  int options);
extern void ea_own_text_keep(SPIPlanPtr plan, EaOwnText *own);

/* Called from _PG_init. */
extern void ea_own_text_init(void);

#endif							/* EA_OWN_TEXT_H */
