/*
 * Members of records, as they are read to be stored.
 */
#ifndef EA_MEMBERS_H
#define EA_MEMBERS_H

#include "management/records.h"

/*
 * A hook, before: roles and attributes stay declared that a draft may give
 * (identity/account.h).
 */
extern void ea_members_hold(EaDraft *draft);

/* As a name is kept, without spaces around it. */
extern EaValue ea_members_name(EaDraft *draft, const EaJson *sent,
							   const char *pointer);
extern EaValue ea_members_email(EaDraft *draft, const EaJson *sent,
								const char *pointer);

/*
 * Declared roles without repetitions, the default ones when there is no
 * array.  Those that the caller may not assign are faults, unless they are
 * held.  The other function has no defaults.
 */
extern EaValue ea_members_roles(EaDraft *draft, const EaJson *array,
								const char *pointer);
extern EaValue ea_members_own_roles(EaDraft *draft, const EaJson *array,
									const char *pointer);

/*
 * May the caller gain the rights of the held roles, by a new password or
 * secret? Only a SuperAdmin may gain roles so that only a SuperAdmin assigns.
 */
extern bool ea_members_may_enter(const EaDraft *draft);

/*
 * An object as jsonb: as it is, or merged into the one that is held (RFC
 * 7396); of the other, members are declared attributes.
 */
extern EaValue ea_members_object(EaDraft *draft, const EaJson *sent,
								 const char *pointer);
extern EaValue ea_members_attributes(EaDraft *draft, const EaJson *object,
									 const char *pointer);

/* ACTIVE, or the other one. */
extern EaValue ea_members_status(EaDraft *draft, const EaJson *sent,
								 const char *pointer, const char *off);

#endif							/* EA_MEMBERS_H */
