/*
 * The declarations as they are stored.
 */
#ifndef EA_DECLARATIONS_H
#define EA_DECLARATIONS_H

#include "apply/apply.h"
#include "apply/name_changes.h"

typedef struct EaDeclarations
{
	const EaApplyPlan *plan;
	int			revision;
	List	   *gone;			/* entities whose rows go, or come anew */
	const char *service;		/* its definition */
	Datum		statements;		/* text[] */
	EaNameChanges *names;
} EaDeclarations;

/* The declarations after a plan, with the statements that they take. */
extern EaDeclarations *ea_declarations_make(const EaApplyPlan *plan,
											List *statements);

/*
 * On a cluster: announce to all nodes what is going to be stored, in a
 * transaction of its own, as they take nothing else.
 */
extern void ea_declarations_announce(const EaDeclarations *declared);

/*
 * The role of an application, or the owner of its tables, is another one than
 * what is stored.
 */
extern bool ea_declarations_change_application(const EaApplyPlan *plan);

/* Store them; with the installer's rights on one node. */
extern void ea_declarations_store(const EaDeclarations *declared);

#endif							/* EA_DECLARATIONS_H */
