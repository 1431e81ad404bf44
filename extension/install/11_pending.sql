-- What a change leaves for after its transaction: indexes of tables that hold
-- rows are built, and their rows held against new constraints, without a lock
-- that requests would wait for
--
-- A row stands for an index or a constraint.  What is left to be done for it
-- is worked out from the declarations and read off the tables, so that it can
-- be interrupted anywhere.  "definition" is what the change showed, to be
-- looked at; nothing runs it.

CREATE TABLE entityapi.pending_step (
	step integer PRIMARY KEY,
	entity text NOT NULL,
	field text,
	kind text NOT NULL
		CHECK (kind IN ('index', 'unique', 'validate', 'required')),
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
	'Indexes and constraints promised by the last change, written by '
	'apply_manifest only';

SELECT pg_catalog.pg_extension_config_dump('entityapi.pending_step', '');

-- The functions belong to whoever installs the extension, since superusers
-- call them, and take the rights of the owner themselves.
CREATE FUNCTION entityapi.claim_apply() RETURNS boolean
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_claim_apply';

COMMENT ON FUNCTION entityapi.claim_apply() IS
	'Be the one who applies manifests, until the session ends or a statement '
	'of it fails; false when another one is';

CREATE FUNCTION entityapi.list_steps(
		OUT step integer,
		OUT part integer,
		OUT entity text,
		OUT field text,
		OUT kind text,
		OUT schema_name text,
		OUT name text,
		OUT statement text,
		OUT lock text,
		OUT revision integer,
		OUT failed_at timestamptz,
		OUT failure text,
		OUT alone boolean)
	RETURNS SETOF record
	LANGUAGE c STABLE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_list_steps';

COMMENT ON FUNCTION entityapi.list_steps() IS
	'Statements that are left to be run, in this order; those that are alone, '
	'outside of a transaction';

CREATE FUNCTION entityapi.run_step(step integer, part integer) RETURNS boolean
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_run_step';

COMMENT ON FUNCTION entityapi.run_step(integer, integer) IS
	'Run a statement of list_steps() that need not be alone, with the rights '
	'of entityapi_owner; false when it is not needed';

CREATE VIEW entityapi.pending_steps AS
SELECT s.step, s.part, s.entity, s.field, s.kind, s.schema_name, s.name,
	   s.statement, s.lock, s.revision, s.failed_at, s.failure
FROM entityapi.list_steps() s;

COMMENT ON VIEW entityapi.pending_steps IS
	'list_steps(), to be looked at';

CREATE FUNCTION entityapi.note_step(step integer, sqlstate text) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_note_step';

COMMENT ON FUNCTION entityapi.note_step(integer, text) IS
	'How a pending step went: the SQLSTATE of its failure, null when it is '
	'tried again';

-- Where the tables are not what is declared, since somebody dropped or altered
-- what an apply had made, or opened it to others; and code that others put on
-- them, of the kind 'notice'.
CREATE FUNCTION entityapi.list_differences(
		OUT entity text,
		OUT field text,
		OUT message text,
		OUT hint text,
		OUT kind text)
	RETURNS SETOF record
	LANGUAGE c STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_list_differences';

COMMENT ON FUNCTION entityapi.list_differences() IS
	'Where tables of entities are not what is declared, and what to do; and '
	'notices, of code that others put on them';

CREATE FUNCTION entityapi.repair_and_apply(
		documents json,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_repair_and_apply';

COMMENT ON FUNCTION entityapi.repair_and_apply(json, boolean, text[]) IS
	'apply_manifest() that also makes again what is missing of the tables';

CREATE FUNCTION entityapi.repair_and_apply(
		documents text,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_repair_and_apply';

COMMENT ON FUNCTION entityapi.repair_and_apply(text, boolean, text[]) IS
	'apply_manifest() that also makes again what is missing of the tables';

CREATE FUNCTION entityapi.repair_and_apply(
		documents jsonb,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_repair_and_apply';

COMMENT ON FUNCTION entityapi.repair_and_apply(jsonb, boolean, text[]) IS
	'apply_manifest() that also makes again what is missing of the tables';

-- Rights seen before they count
CREATE FUNCTION entityapi.compare_rights(
		documents json,
		allow_data_loss text[] DEFAULT '{}',
		max_rows integer DEFAULT 100000,
		OUT role text,
		OUT entity text,
		OUT gained text[],
		OUT lost text[],
		OUT callers integer,
		OUT rows_before bigint,
		OUT rows_after bigint,
		OUT rows_gained bigint,
		OUT rows_lost bigint,
		OUT complete boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_compare_rights';

COMMENT ON FUNCTION entityapi.compare_rights(json, text[], integer) IS
	'What roles would gain and lose if the documents were applied, and how '
	'many rows they read before and after; nothing is changed';

CREATE FUNCTION entityapi.compare_rights(
		documents text,
		allow_data_loss text[] DEFAULT '{}',
		max_rows integer DEFAULT 100000,
		OUT role text,
		OUT entity text,
		OUT gained text[],
		OUT lost text[],
		OUT callers integer,
		OUT rows_before bigint,
		OUT rows_after bigint,
		OUT rows_gained bigint,
		OUT rows_lost bigint,
		OUT complete boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_compare_rights';

COMMENT ON FUNCTION entityapi.compare_rights(text, text[], integer) IS
	'What roles would gain and lose if the documents were applied, and how '
	'many rows they read before and after; nothing is changed';

CREATE FUNCTION entityapi.compare_rights(
		documents jsonb,
		allow_data_loss text[] DEFAULT '{}',
		max_rows integer DEFAULT 100000,
		OUT role text,
		OUT entity text,
		OUT gained text[],
		OUT lost text[],
		OUT callers integer,
		OUT rows_before bigint,
		OUT rows_after bigint,
		OUT rows_gained bigint,
		OUT rows_lost bigint,
		OUT complete boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_compare_rights';

COMMENT ON FUNCTION entityapi.compare_rights(jsonb, text[], integer) IS
	'What roles would gain and lose if the documents were applied, and how '
	'many rows they read before and after; nothing is changed';
