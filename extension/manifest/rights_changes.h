/*
 * What a change of the declarations does besides statements.
 */
#ifndef EA_RIGHTS_CHANGES_H
#define EA_RIGHTS_CHANGES_H

#include "nodes/pg_list.h"

#include "base/jsonread.h"

/* Definitions, as trees. */
typedef struct EaManifestState
{
	const EaJson *service;		/* NULL: there is none yet */
	List	   *entities;
	const EaJson *documents;	/* the array as it was declared, or NULL */
	bool		in_order;		/* as written: not that of jsonb */
} EaManifestState;

/* Differences that tables do not show: lines (char *), for people. */
extern List *ea_manifest_changes(const EaManifestState *before,
								 const EaManifestState *after);

#endif							/* EA_RIGHTS_CHANGES_H */
