/*
 * The keys of an index scan, taken from a plan and given their values.
 */
#ifndef EA_SCAN_KEYS_H
#define EA_SCAN_KEYS_H

#include "access/skey.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "base/exec_params.h"

/* More keys than any statement of ours has. */
#define EA_SCAN_KEYS 8

/* Where a key's value comes from. */
typedef struct EaKeySource
{
	int			param;			/* index of the parameter, -1: none */
	Datum		value;			/* of a constant */
	bool		isnull;
} EaKeySource;

typedef struct EaScanKeys
{
	int			n;
	ScanKeyData keys[EA_SCAN_KEYS]; /* all but the argument */
	EaKeySource sources[EA_SCAN_KEYS];
} EaScanKeys;

/*
 * Read the qualifications of a B-tree scan, each a column, an operator and a
 * parameter or constant; copies go to the current memory context.  False if
 * any is something else.
 */
extern bool ea_scan_keys_read(EaScanKeys *keys, Relation index, List *quals);

/*
 * Fill in the arguments of "bound", EA_SCAN_KEYS long; false when one is
 * null, which nothing equals.
 */
extern bool ea_scan_keys_bind(const EaScanKeys *keys, const EaValue *params,
							  ScanKey bound);

#endif							/* EA_SCAN_KEYS_H */
