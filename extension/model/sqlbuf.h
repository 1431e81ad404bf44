/*
 * Build one statement: text from the catalog, values as parameters.
 *
 * There is one way for an entity's table into a statement, and it brings the
 * tenant and policy predicates with it: ea_sqlbuf_from() and its siblings
 * write the relation and `WHERE <predicates>` in one go, so conditions of
 * the caller always begin with " AND ".  Aliases are t0, t1, ... in the order
 * in which relations are added, so that equal requests give equal text.
 */
#ifndef EA_SQLBUF_H
#define EA_SQLBUF_H

#include "base/text.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "model/catalog.h"
#include "request/query_string.h"
#include "request/request.h"

/* A row that another one refers to, or none. */
typedef struct EaSqlJoin
{
	EaEntity   *entity;
	int			alias;
	int			from;			/* the alias that refers to it, */
	const char *column;			/* by this column */
} EaSqlJoin;

/*
 * All tables of a statement are named in the same way: as shards, if they are
 * on this node, or as Citus has them.
 */
typedef enum EaSqlPlace
{
	EA_PLACE_UNKNOWN,
	EA_PLACE_HERE,
	EA_PLACE_ANYWHERE
} EaSqlPlace;

typedef struct EaSqlBuf
{
	EaRequest  *req;
	StringInfoData text;
	int			nparams;
	int			maxparams;
	EaValue    *params;
	int			nreads;			/* columns that are read of the rows, */
	int			maxreads;
	Oid		   *reads;			/* and their types */
	int			nrelations;		/* next alias */
	List	   *joins;			/* EaSqlJoin, for the next relation */
	int			tenant_param;	/* number of the tenant parameter, 0: none */
	int			planning;		/* EA_PLAN_... of engine/exec.h */
	EaReplaced *replaced;		/* asks for the row before; or NULL */
	bool		deleted_too;	/* soft-deleted rows are not left out */
	EaShown		shown;			/* of alias shown_alias alone; of all others
								 * the live ones */
	int			shown_alias;
	bool		all_tenants;	/* of join tables only: links to a global
								 * row */
	EaSqlPlace	place;			/* where its tables are */
	bool		writes;			/* it changes one of them */
	bool		of_application; /* it is over tables of one, */
	bool		by_settings;	/* with policies that may ask for settings, */
	bool		spells;			/* or values whose texts depend on some; */
	bool		of_service;		/* and over others */
	bool		keeps_rows;		/* it deletes, or changes no row */
	bool		looks;			/* rows are locked that are not written */
	bool		holds;			/* of the next relation, what leads to its
								 * tenant is to be held as well: */
	int			nled;			/* so many rows, */
	int			led_alias;		/* for this alias, */
	EaEntity   *led;			/* of this entity */
	bool		triggered;		/* it has run, and user-defined triggers had
								 * a say in what it wrote */
} EaSqlBuf;

/*
 * A text that was written before, to be written again; nothing if text is
 * NULL.
 */
typedef struct EaSqlPart
{
	char	   *text;
	int			len;
	int			nreads;			/* columns that are read by it, */
	Oid		   *reads;			/* and their types */
} EaSqlPart;

extern void ea_sqlbuf_init(EaSqlBuf *b, EaRequest *req);

/* Append text that stems from this program or from the catalog only. */
#define ea_sqlbuf_add(b, lit) ea_text_string(&(b)->text, (lit))
#define ea_sqlbuf_addf(b, ...) ea_text_format(&(b)->text, __VA_ARGS__)

/* Append `t<alias>.<column>`. */
extern void ea_sqlbuf_column(EaSqlBuf *b, int alias, const char *column);

/*
 * The column may be several (model/id_columns.h): then that is a row of them,
 * to be compared; here with commas between them, for lists of columns; and the
 * value that they have together.
 */
extern void ea_sqlbuf_columns(EaSqlBuf *b, int alias, const char *columns);
extern void ea_sqlbuf_id_read(EaSqlBuf *b, int alias, const char *column);

/*
 * The next column of the rows is read as one of this type; the other function
 * appends the column as well.  A statement whose rows are read names all of
 * them, or it does not run.
 */
extern void ea_sqlbuf_reads(EaSqlBuf *b, Oid type);
extern void ea_sqlbuf_select(EaSqlBuf *b, int alias, const char *column,
							 Oid type);

/* The version of what is locked optimistically; and it is read as the next. */
extern void ea_sqlbuf_version(EaSqlBuf *b, int alias, const EaEntity *entity);
extern void ea_sqlbuf_select_version(EaSqlBuf *b, int alias,
									 const EaEntity *entity);

/* The same for each column that a field has in the row, a comma before it. */
extern void ea_sqlbuf_select_field(EaSqlBuf *b, int alias,
								   const EaField *field);

/*
 * Append a text of the value of a column, `t<alias>.<column>` between what it
 * takes to read it, if its values do not cross as they are.
 */
extern void ea_sqlbuf_column_read(EaSqlBuf *b, int alias,
								  const EaColumn *column);

/* Append the cast behind a parameter for the column, or an array of them. */
extern void ea_sqlbuf_cast(EaSqlBuf *b, const EaColumn *column, bool array);

/*
 * A statement over the table that finds nothing but whether the field's type
 * takes a text: an error, if it does not.
 */
extern void ea_sqlbuf_convert(EaSqlBuf *b, const EaField *field, Datum value);

/* Add a parameter; returns its number, and the macro also writes `$n`. */
extern int	ea_sqlbuf_param(EaSqlBuf *b, Oid type, Datum value, bool isnull);
extern void ea_sqlbuf_value(EaSqlBuf *b, Oid type, Datum value, bool isnull);

/* Append ` ORDER BY t<alias>.<column>`, and ` LIMIT <rows>`. */
extern void ea_sqlbuf_order_by(EaSqlBuf *b, int alias, const char *column);
extern void ea_sqlbuf_limit(EaSqlBuf *b, int rows);

/*
 * Append ` AND t<alias>.<column> = $n` with an id, the same with a column of
 * another relation, and ` AND t<alias>.<column> <which> ($n)` with an array of
 * them, where `which` is `= ANY` or the like.  The key is that of the ids: the
 * column may be one that refers to it.
 */
extern void ea_sqlbuf_is(EaSqlBuf *b, int alias, const char *column,
						 const EaIdKey *key, const EaId *id);
extern void ea_sqlbuf_equal(EaSqlBuf *b, int alias, const char *column,
							int other, const char *of_other);
extern void ea_sqlbuf_among(EaSqlBuf *b, int alias, const char *column,
							const char *which, const EaIds *ids);

/* The same with an entity's own id, and that as a column that is read. */
#define ea_sqlbuf_is_id(b, alias, entity, id) \
	ea_sqlbuf_is((b), (alias), (entity)->id_column, &(entity)->key, (id))
#define ea_sqlbuf_select_id(b, alias, entity) \
	ea_sqlbuf_select((b), (alias), (entity)->id_column, \
					 (entity)->key.type->oid)

/* A parameter, and `$n` written. */
#define ea_sqlbuf_id(b, key, id) \
	ea_sqlbuf_value((b), (key)->type->oid, ea_id_datum((key), (id)), false)

/* The same without parentheses, where there are several parts. */
extern void ea_sqlbuf_id_bare(EaSqlBuf *b, const EaIdKey *key,
							  const EaId *id);

/* The arrays of a list of ids of several parts, for unnest(). */
struct EaIdRows;
extern void ea_sqlbuf_arrays(EaSqlBuf *b, const struct EaIdRows *rows);

/*
 * Append `<column> = $n` to the assignments of an UPDATE, for each column that
 * an id has; or null, but to those that are among `but` as well.
 */
extern void ea_sqlbuf_set_id(EaSqlBuf *b, StringInfo set, const char *column,
							 const EaIdKey *key, const EaId *id);
extern void ea_sqlbuf_set_null(StringInfo set, const char *column,
							   const char *but);

/* Number of the parameter with the request's tenant, added once. */
extern int	ea_sqlbuf_tenant(EaSqlBuf *b);

/*
 * The writer of policies: ` AND <condition>` for row t<alias>, or nothing, so
 * that the rows are left that the caller may read; and whether that leaves all
 * rows.  Installed when the library is loaded.
 */
typedef void (*EaRowPolicy) (EaSqlBuf *b, EaEntity *entity, int alias);
typedef bool (*EaHidesRows) (EaRequest *req, EaEntity *entity);

extern void ea_sqlbuf_install(EaRowPolicy policy, EaHidesRows hides);

/*
 * ` FROM app.invoice t<n> WHERE <predicates of op>`; returns n.  Operation
 * is EA_OP_READ or EA_OP_UPDATE for rows that the caller may read, and
 * EA_OP_DELETE for all of the tenant's, seen or not, that a deletion reaches.
 * ea_sqlbuf_update() writes `UPDATE app.invoice t<n> SET <set> WHERE ...`
 * with set as given by the caller; ea_sqlbuf_delete() is EA_OP_DELETE.
 */
extern int	ea_sqlbuf_from(EaSqlBuf *b, EaEntity *entity, EaOperation op);

/*
 * ` FROM app.invoice t<n> WHERE true`, of all tenants: for the sweep, which
 * goes on in the name of the tenant of each row, and to see whether any refers
 * to rows common to them.  The other one leaves out the tenant's.
 */
extern int	ea_sqlbuf_from_all(EaSqlBuf *b, EaEntity *entity);
extern int	ea_sqlbuf_from_others(EaSqlBuf *b, EaEntity *entity);

/*
 * ea_sqlbuf_from() with an alias taken before, because something else that
 * needs aliases stands between the select list and FROM.
 */
extern int	ea_sqlbuf_reserve(EaSqlBuf *b);
extern void ea_sqlbuf_from_as(EaSqlBuf *b, EaEntity *entity, EaOperation op,
							  int alias);

/*
 * The relation that is written next is followed by ` LEFT JOIN <target> t<n>
 * ON <predicates> AND t<n>.id = t<from>.<column>`: the target of a to-one if
 * the caller may read it, else nulls.  Asked for again, it is the same one.
 * Returns n.
 */
extern int	ea_sqlbuf_left_join(EaSqlBuf *b, EaEntity *target, int from,
								const char *column);

extern int	ea_sqlbuf_update(EaSqlBuf *b, EaEntity *entity, const char *set,
							 EaOperation op);
extern int	ea_sqlbuf_delete(EaSqlBuf *b, EaEntity *entity);

/* Rows of the entity may be hidden from the caller within the tenant. */
extern bool ea_sqlbuf_hides_rows(EaRequest *req, EaEntity *entity);

/*
 * The rows that the caller may read are found by tables of an application and
 * by others.  No write does that: rows that are held were looked at before,
 * and are written as those of EA_OP_DELETE.
 */
extern bool ea_sqlbuf_spans(EaRequest *req, EaEntity *entity);

/*
 * ` FOR <strength> OF t<alias>`, "SHARE" or "KEY SHARE": rows that stay as
 * they are, for which it is enough that they may be read.
 */
extern void ea_sqlbuf_look(EaSqlBuf *b, const char *strength, int alias);

/*
 * How many of the entity's rows that the caller may read have these values,
 * counted without a statement; false when it takes one.
 */
extern bool ea_sqlbuf_count(EaRequest *req, EaEntity *entity, int nkeys,
							const EaCountKey *keys, int64 *count);

/*
 * `INSERT INTO app.invoice AS t<n> (tenant_id, `: the caller appends the
 * other columns, `) VALUES `, and for each row ea_sqlbuf_insert_row(), which
 * writes `($1, ` with the tenant, the other values and `)`.  Returns n.
 */
extern int	ea_sqlbuf_insert(EaSqlBuf *b, EaEntity *entity);
extern void ea_sqlbuf_insert_row(EaSqlBuf *b, EaEntity *entity);

/*
 * The join table of a many-to-many field, seen from the field's side:
 * ` FROM ... WHERE <tenant>`, `DELETE FROM ... WHERE <tenant>`, and `INSERT
 * INTO ... (tenant_id, near, far) SELECT <tenant>, ` to be followed by two
 * expressions.  The rows of the far side are not checked.
 */
extern int	ea_sqlbuf_join_from(EaSqlBuf *b, EaField *field);
extern int	ea_sqlbuf_join_delete(EaSqlBuf *b, EaField *field);
extern void ea_sqlbuf_join_insert(EaSqlBuf *b, EaField *field);

/*
 * The text after these: links that are there stay.  It names the service's own
 * key, as a row that a user-defined unique index keeps out is no link.
 */
extern void ea_sqlbuf_join_conflict(EaSqlBuf *b, EaField *field);

/*
 * ` EXISTS (SELECT 1 FROM target t<m> WHERE <predicates> AND <join>` for one
 * hop from alias `from` through member `member` of a relationship; the
 * caller appends conditions and the closing parenthesis.  Returns m.
 */
extern int	ea_sqlbuf_hop(EaSqlBuf *b, EaField *field, int member, int from);

/*
 * Keep the part of the statement beyond so much text and so many columns, with
 * the entity's declarations; and append it, to one that has as much already.
 */
extern void ea_sqlbuf_keep(const EaSqlBuf *b, int len, int nreads,
						   EaEntity *entity, EaSqlPart *part);
extern void ea_sqlbuf_add_part(EaSqlBuf *b, const EaSqlPart *part);

/*
 * The same for the whole of a statement over an entity's table whose
 * parameters are the tenant, if the entity has one, and an id: it is kept, and
 * written, only where nothing else narrows the rows and no table is elsewhere.
 * False if it has not been written.
 */
extern void ea_sqlbuf_keep_by_id(const EaSqlBuf *b, EaEntity *entity,
								 EaSqlPart *part);
extern bool ea_sqlbuf_add_by_id(EaSqlBuf *b, EaEntity *entity,
								const EaSqlPart *part, const EaIdKey *key,
								const EaId *id);

/*
 * This node has the rows of the request's tenant, or, without one, those that
 * all nodes have.  For a distributed deployment.
 */
extern bool ea_sqlbuf_is_here(EaRequest *req);

/*
 * Report to the shim which node this is, and which one has the request's
 * tenant, if the deployment is distributed.
 */
extern void ea_sqlbuf_tell_node(EaRequest *req);

/* Run the statement. */
extern uint64 ea_sqlbuf_run(EaSqlBuf *b, EaExecMode mode, bool one_row,
							EaRowFunction row, void *arg);

/* The same for a statement whose rows are ids, which the list gets. */
extern uint64 ea_sqlbuf_run_ids(EaSqlBuf *b, EaExecMode mode, EaIds *ids);

#endif							/* EA_SQLBUF_H */
