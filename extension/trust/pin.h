/*
 * Settings and user, held where user-defined code may run.
 *
 * ea_pin_end() undoes all that this code sets, be it with SET, SET LOCAL,
 * set_config() or RESET, and any role that it took.  After an error the end of
 * the (sub)transaction does the same.
 */
#ifndef EA_PIN_H
#define EA_PIN_H

typedef struct EaPin
{
	int			nest;
	Oid			user;
	int			security;
} EaPin;

/* Also sees to it that the search path is the one all statements rely on. */
extern void ea_pin_begin(EaPin *pin);

/* It is that one. */
extern bool ea_pin_holds(void);
extern void ea_pin_end(const EaPin *pin);

/* Another value for a setting, until the end of the innermost pin. */
extern void ea_pin_set(const char *name, const char *value);

/*
 * The same for the style of times where Citus may send values to other nodes:
 * they go as text, and in other styles 05/06 is read there as it is by
 * default.  A declaration may be about to give Citus the tables.
 */
extern void ea_pin_times(void);

#endif							/* EA_PIN_H */
