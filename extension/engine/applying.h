/*
 * The session that applies declarations, and the steps that are left of that.
 */
#ifndef EA_APPLYING_H
#define EA_APPLYING_H

/*
 * Does another session of this node apply them?  As long as it holds a table's
 * lock for that, this is true.
 */
extern bool ea_applying(void);

#endif							/* EA_APPLYING_H */
