/*
 * Sort keys to SQL over an entity's relation.
 */
#ifndef EA_SORT_H
#define EA_SORT_H

#include "query/filter.h"

/*
 * The order that sort keys ask for.  Throws 400 with source.parameter "sort"
 * for a key that cannot be sorted by.
 */
extern EaOrder *ea_sort_resolve(EaRequest *req, EaEntity *entity,
								const EaSortKey *keys, int nkeys);

/*
 * Have the relation with alias t<alias>, which is written after this, joined
 * with the tables that the terms are read of.  Comes before all that follows.
 */
extern void ea_sort_join(EaSqlBuf *b, const EaOrder *order, int alias);

/* Append the value of a term, for the relation with alias t<alias>. */
extern void ea_sort_term(EaSqlBuf *b, const EaSortTerm *term, int alias);

/*
 * Append ` ORDER BY ...`.  position: where the values of the terms stand in
 * the select list, the id's excepted, from 1; 0: nowhere.
 */
/* The same as text where its values cross so. */
extern void ea_sort_term_read(EaSqlBuf *b, const EaSortTerm *term, int alias);

extern void ea_sort_order(EaSqlBuf *b, const EaOrder *order, int alias,
						  int position, bool backwards);

#endif							/* EA_SORT_H */
