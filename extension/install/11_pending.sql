-- What a change leaves for after its transaction: indexes of tables that hold
-- rows are built, and their rows held against new constraints, without a lock
-- that requests would wait for
--
-- A row stands for an index or a constraint.  What is left to be done for it
-- is read off the tables, so that it can be interrupted anywhere and be done
-- by anybody: select statement from entityapi.pending_steps \gexec

CREATE TABLE entityapi.pending_step (
	step integer PRIMARY KEY,
	entity text NOT NULL,
	field text,
	kind text NOT NULL CHECK (kind IN ('index', 'unique', 'validate', 'required')),
	schema_name text NOT NULL,
	table_name text NOT NULL,
	name text NOT NULL,
	column_name text,
	definition text,
	revision integer NOT NULL,
	failed_at timestamptz,
	failure text
);

COMMENT ON TABLE entityapi.pending_step IS
	'Indexes and constraints promised by the last change, written by apply_manifest only';

SELECT pg_catalog.pg_extension_config_dump('entityapi.pending_step', '');

CREATE VIEW entityapi.pending_steps AS
SELECT p.step, s.part, p.entity, p.field, p.kind, p.schema_name, p.name, s.statement, s.lock, p.revision, p.failed_at, p.failure
FROM entityapi.pending_step p
JOIN pg_catalog.pg_namespace n ON n.nspname = p.schema_name
JOIN pg_catalog.pg_class t ON t.relnamespace = n.oid AND t.relname = p.table_name
LEFT JOIN pg_catalog.pg_class r ON r.relnamespace = n.oid AND r.relname = p.name
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = r.oid AND i.indrelid = t.oid
LEFT JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid AND c.conname = p.name
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attname = p.column_name
CROSS JOIN LATERAL (VALUES
	(1, p.kind IN ('index', 'unique') AND NOT i.indisvalid, 'SHARE UPDATE EXCLUSIVE',
		pg_catalog.format('DROP INDEX CONCURRENTLY %I.%I', p.schema_name, p.name)),
	(2, p.kind IN ('index', 'unique') AND i.indisvalid IS NOT TRUE, 'SHARE UPDATE EXCLUSIVE', p.definition),
	(3, p.kind = 'unique' AND c.oid IS NULL, 'ACCESS EXCLUSIVE',
		pg_catalog.format('ALTER TABLE %I.%I ADD CONSTRAINT %I UNIQUE USING INDEX %I', p.schema_name, p.table_name, p.name, p.name)),
	(4, p.kind = 'required' AND NOT a.attnotnull AND c.convalidated IS NOT TRUE AND p.definition IS NOT NULL, 'ROW EXCLUSIVE', p.definition),
	(5, p.kind = 'required' AND NOT a.attnotnull AND c.oid IS NULL, 'ACCESS EXCLUSIVE',
		pg_catalog.format('ALTER TABLE %I.%I ADD CONSTRAINT %I CHECK (%I IS NOT NULL) NOT VALID', p.schema_name, p.table_name, p.name,
			coalesce(p.column_name, ''))),
	(6, CASE p.kind WHEN 'validate' THEN NOT c.convalidated WHEN 'required' THEN NOT a.attnotnull AND c.convalidated IS NOT TRUE END,
		'SHARE UPDATE EXCLUSIVE',
		pg_catalog.format('ALTER TABLE %I.%I VALIDATE CONSTRAINT %I', p.schema_name, p.table_name, p.name)),
	(7, p.kind = 'required' AND NOT a.attnotnull, 'ACCESS EXCLUSIVE',
		pg_catalog.format('ALTER TABLE %I.%I ALTER COLUMN %I SET NOT NULL', p.schema_name, p.table_name, coalesce(p.column_name, ''))),
	(8, p.kind = 'required' AND (c.oid IS NOT NULL OR NOT a.attnotnull), 'ACCESS EXCLUSIVE',
		pg_catalog.format('ALTER TABLE %I.%I DROP CONSTRAINT %I', p.schema_name, p.table_name, p.name))
) s(part, needed, lock, statement)
WHERE s.needed
ORDER BY p.step, s.part;

COMMENT ON VIEW entityapi.pending_steps IS
	'Statements that are left to be run, each by itself, in this order';

-- Who runs a step says how it went, by the SQLSTATE alone: messages quote
-- values of tenants.  Null: it is being tried.
CREATE FUNCTION entityapi.note_step(step integer, sqlstate text) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		UPDATE entityapi.pending_step p
		   SET failed_at = CASE WHEN $2 IS NOT NULL THEN clock_timestamp() END,
			   failure = $2
		 WHERE p.step = $1
	$$;

COMMENT ON FUNCTION entityapi.note_step(integer, text) IS
	'How a pending step went: the SQLSTATE of its failure, null when it is tried again';
