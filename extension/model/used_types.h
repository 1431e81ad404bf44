/*
 * The types that a table uses, as a part of statements over the catalogs.
 *
 * They go into a WITH RECURSIVE behind "own", whose rows (class, part) are the
 * expressions of the table as pg_depend knows them; asked.rel is the table.
 */
#ifndef EA_USED_TYPES_H
#define EA_USED_TYPES_H

/* The types that an expression names. */
#define EA_TYPES_OF(class, part) \
	"SELECT d.refobjid FROM pg_depend d WHERE d.classid = " class \
	" AND d.objid = " part " AND d.refclassid = 'pg_type'::regclass"

/*
 * The types of columns and expressions, and all that these are made of:
 * domains' bases and checks, elements, attributes, subtypes.  Types of the
 * system are its own.
 */
#define EA_USED_TYPES \
	" used (oid) AS (" \
	"(SELECT a.atttypid FROM pg_attribute a" \
	" WHERE a.attrelid = asked.rel AND a.attnum > 0 AND NOT a.attisdropped" \
	" UNION ALL SELECT x.refobjid FROM own CROSS JOIN LATERAL (" \
	EA_TYPES_OF("own.class", "own.part") ") x)" \
	" UNION SELECT p.oid FROM used u JOIN pg_type t ON t.oid = u.oid" \
	" CROSS JOIN LATERAL (SELECT t.typbasetype UNION ALL SELECT t.typelem" \
	" UNION ALL SELECT g.rngsubtype FROM pg_range g WHERE g.rngtypid = t.oid" \
	" UNION ALL SELECT g.rngtypid FROM pg_range g" \
	" WHERE g.rngmultitypid = t.oid" \
	" UNION ALL SELECT a.atttypid FROM pg_attribute a" \
	" WHERE a.attrelid = t.typrelid AND a.attnum > 0" \
	" AND NOT a.attisdropped" \
	" UNION ALL " EA_TYPES_OF("'pg_type'::regclass", "t.oid") \
	" UNION ALL SELECT x.refobjid FROM pg_constraint c CROSS JOIN LATERAL (" \
	EA_TYPES_OF("'pg_constraint'::regclass", "c.oid") ") x" \
	" WHERE c.contypid = t.oid) p (oid)" \
	" WHERE p.oid <> 0 AND t.oid >= 16384)"

#endif							/* EA_USED_TYPES_H */
