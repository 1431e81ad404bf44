-- First of all, in every install and update script: nobody else's objects are
-- found by a name from here on.  CREATE EXTENSION has put the schema, and that
-- of pgcrypto, onto the path; with nothing but pg_catalog there, and pg_temp,
-- where neither functions nor operators are looked for, every name and every
-- operator below is PostgreSQL's, exact match or not.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- Every request would be refused in a database of another encoding.
DO $$
BEGIN
	IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
		RAISE EXCEPTION 'entityapi needs a database with encoding UTF8'
			USING ERRCODE = 'feature_not_supported',
				  HINT = 'Make the database with "createdb -T template0 '
						 '-E UTF8".';
	END IF;
END
$$;

-- Nor is anything taken over that was there before.  A dump makes the schema
-- before the extension; it belongs to who may have made it then, and is empty.
DO $$
DECLARE
	found text;
BEGIN
	SELECT r.rolname INTO found
	FROM pg_catalog.pg_namespace n
	JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
	WHERE n.nspname = 'entityapi' AND NOT r.rolsuper
	  AND r.rolname NOT IN (CURRENT_USER, 'entityapi_owner');
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'schema entityapi belongs to %, who could change what superusers '
			'run', found
			USING ERRCODE = 'insufficient_privilege',
				  HINT = 'Drop the schema, or give it to a superuser.';
	END IF;

	-- Trusted extensions belong to whoever made them, and who drops one takes
	-- all along that needs it.  The database's owner could drop that as well.
	SELECT pg_catalog.string_agg(
			pg_catalog.format('%I of %I', e.extname, r.rolname), ', '
			ORDER BY e.extname)
	INTO found
	FROM pg_catalog.pg_extension e
	JOIN pg_catalog.pg_roles r ON r.oid = e.extowner
	JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
	WHERE e.extname IN ('pgcrypto', 'plpgsql') AND NOT r.rolsuper
	  AND r.oid <> d.datdba;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'who owns an extension that this one needs could drop the service '
			'with it: %', found
			USING ERRCODE = 'insufficient_privilege',
				  HINT = 'Drop that extension and make it as a superuser, or '
						 'give it to one: '
						 'REASSIGN OWNED BY the role TO a superuser.';
	END IF;

	-- all that a schema holds depends on it: members apart, and the months of
	-- the audit log, which are made at run time
	SELECT pg_catalog.string_agg(
			pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid), ', '
			ORDER BY d.classid, d.objid)
	INTO found
	FROM pg_catalog.pg_depend d
	WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
	  AND d.refobjid = 'entityapi'::pg_catalog.regnamespace
	  AND d.deptype = 'n'
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_extension e
		WHERE e.extname IN ('entityapi', 'pgcrypto')
		  AND (d.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			   AND d.objid = e.oid
			   OR EXISTS (
			SELECT FROM pg_catalog.pg_depend m
			WHERE m.classid = d.classid AND m.objid = d.objid
			  AND m.deptype = 'e'
			  AND m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			  AND m.refobjid = e.oid)))
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		JOIN pg_catalog.pg_depend m ON m.classid = d.classid
			AND m.objid = i.inhparent AND m.deptype = 'e'
		JOIN pg_catalog.pg_extension e
			ON m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			AND m.refobjid = e.oid
		WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
		  AND i.inhrelid = d.objid AND c.relispartition
		  AND c.relname ~ '^audit_[0-9]{4}_[0-9]{2}$'
		  AND e.extname = 'entityapi');
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'schema entityapi holds what is no part of the extension: %', found
			USING ERRCODE = 'duplicate_object',
				  HINT = 'Move it elsewhere or drop it.';
	END IF;
END
$$;

-- At an update: before 1.2 the tables belonged to entityapi_owner, whose
-- members could hang onto them what runs as whoever uses them; from here on
-- that would be a superuser.  What they have of triggers, rules, policies,
-- children, foreign keys, expressions and types is ours or PostgreSQL's, and
-- all of it is where it was made, or somebody has to look.  This comes before
-- anything is changed, as that may run expressions; and nothing can be added
-- meanwhile.
--
-- The locks are those that changes need: raising one later would deadlock
-- with a request that waits for it already.  Requests go on meanwhile, each
-- with locks of its own and in its own order; those of 1.0 and 1.1 wait for
-- two seconds, and then fail.  So all locks together are waited for less than
-- one, after which a session that waits would find a deadlock, and if they are
-- not to be had, tried anew when others have had their turn.
DO $$
DECLARE
	before CONSTANT text := pg_catalog.current_setting('lock_timeout');
	until timestamptz;
	held pg_catalog.regclass;
	found text;
BEGIN
	FOR attempt IN 1 .. 60 LOOP
		BEGIN
			-- in the end, somebody else may fail
			until := pg_catalog.clock_timestamp()
				+ CASE WHEN attempt <= 50 THEN interval '900ms'
					   ELSE interval '10s' END;
			FOR held IN
				SELECT c.oid FROM pg_catalog.pg_class c
				JOIN pg_catalog.pg_depend m
					ON m.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
					AND m.objid = c.oid AND m.deptype = 'e'
				JOIN pg_catalog.pg_extension e
					ON m.refclassid =
						'pg_catalog.pg_extension'::pg_catalog.regclass
					AND m.refobjid = e.oid
				WHERE e.extname = 'entityapi' AND c.relkind IN ('r', 'p')
				-- as most requests do: who asks, what for, the log
				ORDER BY c.relname NOT IN ('session', 'refresh_token',
										   'personal_api_key',
										   'service_account'),
						 c.relname <> 'account', c.relname = 'audit', c.oid
			LOOP
				PERFORM pg_catalog.set_config('lock_timeout',
					greatest(1, (1000 * extract(epoch FROM until
						- pg_catalog.clock_timestamp()))::int)::text, true);
				EXECUTE pg_catalog.format(
					'LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', held);
			END LOOP;
			PERFORM pg_catalog.set_config('lock_timeout', before, true);
			EXIT;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF attempt = 60 THEN
				RAISE EXCEPTION 'others have % in use for too long', held
					USING ERRCODE = 'lock_not_available',
						  HINT = 'pg_locks tells who: end that, or update '
								 'when it is over.';
			END IF;
		END;
		PERFORM pg_catalog.pg_sleep(0.5);
	END LOOP;

	WITH member AS (
		SELECT m.classid, m.objid
		FROM pg_catalog.pg_depend m
		JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
		WHERE m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
		  AND m.deptype = 'e' AND e.extname = 'entityapi'
	), month AS (
		SELECT i.inhrelid AS id
		FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = pg_catalog.to_regclass('entityapi.audit')
		  AND c.relispartition
	), relation AS (
		SELECT c.oid AS id, c.relkind AS kind
		FROM pg_catalog.pg_class c
		WHERE c.oid IN (
			SELECT objid FROM member
			WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass
			UNION SELECT id FROM month)
	), expression AS (
		SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass AS class,
			   d.oid AS id,
			   pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS text
		FROM pg_catalog.pg_attrdef d JOIN relation r ON r.id = d.adrelid
		UNION ALL
		SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid,
			   pg_catalog.pg_get_expr(c.conbin, c.conrelid)
		FROM pg_catalog.pg_constraint c JOIN relation r ON r.id = c.conrelid
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid,
			   pg_catalog.concat(
					pg_catalog.pg_get_expr(i.indexprs, i.indrelid),
					pg_catalog.pg_get_expr(i.indpred, i.indrelid))
		FROM pg_catalog.pg_index i JOIN relation r ON r.id = i.indrelid
	), stranger AS (
		SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass AS class,
			   t.oid AS id
		FROM pg_catalog.pg_trigger t JOIN relation r ON r.id = t.tgrelid
		WHERE NOT t.tgisinternal
		  AND (t.tgqual IS NOT NULL
			   AND pg_catalog.pg_get_triggerdef(t.oid)
				   !~ (' FOR EACH ROW'
					   ' WHEN [(]entityapi[.]copies_accounts[(][)][)]'
					   ' EXECUTE FUNCTION entityapi[.]copy_account[(][)]$')
			   OR t.tgfoid NOT IN (SELECT objid FROM member))
		UNION ALL
		SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid
		FROM pg_catalog.pg_rewrite w JOIN relation r ON r.id = w.ev_class
		WHERE NOT (r.kind = 'v' AND w.rulename = '_RETURN')
		UNION ALL
		SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid
		FROM pg_catalog.pg_policy p JOIN relation r ON r.id = p.polrelid
		UNION ALL
		SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid
		FROM pg_catalog.pg_statistic_ext s JOIN relation r ON r.id = s.stxrelid
		WHERE s.stxexprs IS NOT NULL
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.inhrelid
		FROM pg_catalog.pg_inherits i
		WHERE i.inhparent IN (SELECT id FROM relation)
		  AND i.inhrelid NOT IN (SELECT id FROM month)
		   OR i.inhrelid IN (SELECT id FROM relation)
			  AND i.inhparent <> pg_catalog.to_regclass('entityapi.audit')
		UNION ALL
		SELECT m.classid, m.objid
		FROM (SELECT classid, objid FROM member
			  UNION
			  SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, id
			  FROM month) m
		WHERE (pg_catalog.pg_identify_object(m.classid, m.objid, 0)).schema
			  <> 'entityapi'
		UNION ALL
		-- a table that refers to ours lets its owner in on what is done to
		-- ours
		SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid
		FROM pg_catalog.pg_constraint f
		JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
		JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
		WHERE f.contype = 'f'
		  AND (f.confrelid IN (SELECT id FROM relation)
			   AND f.conrelid NOT IN (SELECT id FROM relation)
			   AND NOT o.rolsuper
			   OR f.conrelid IN (SELECT id FROM relation)
			   AND f.confrelid NOT IN (SELECT id FROM relation))
		UNION ALL
		-- a name right before a parenthesis is a call
		SELECT x.class, x.id FROM expression x
		WHERE pg_catalog.regexp_replace(
				x.text, '[[:<:]](jsonb_typeof|substr)[(]', '', 'g')
			  ~ '["[:alnum:]_][(]'
		UNION ALL
		-- what is PostgreSQL's own is on no record of dependencies
		SELECT d.classid, d.objid
		FROM pg_catalog.pg_depend d
		WHERE (d.classid, d.objid) IN (
				SELECT class, id FROM expression
				UNION ALL
				SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, id
				FROM relation)
		  AND d.refclassid IN (
				'pg_catalog.pg_type'::pg_catalog.regclass,
				'pg_catalog.pg_proc'::pg_catalog.regclass,
				'pg_catalog.pg_operator'::pg_catalog.regclass,
				'pg_catalog.pg_opclass'::pg_catalog.regclass,
				'pg_catalog.pg_collation'::pg_catalog.regclass)
		  AND (d.refclassid, d.refobjid) NOT IN (
				SELECT classid, objid FROM member)
	)
	SELECT pg_catalog.string_agg(
			DISTINCT pg_catalog.pg_describe_object(s.class, s.id, 0), ', ')
	INTO found
	FROM stranger s;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'the tables of the extension have what is no part of it: %', found
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  HINT = 'Drop it, then update.';
	END IF;
END
$$;
-- Roles belong to the cluster: other databases may have made them already, or
-- somebody else, who may have given them more than they are for.  Nodes of
-- Citus log in at each other as those that run statements.
DO $$
DECLARE
	role text;
	fault text;
BEGIN
	FOREACH role IN ARRAY ARRAY['entityapi_owner', 'entityapi_client',
								  'entityapi_reader']
	LOOP
		SELECT pg_catalog.concat_ws(', ',
				CASE WHEN r.rolcanlogin AND (
						role = 'entityapi_client'
						OR NOT EXISTS (SELECT FROM pg_catalog.pg_extension e
									   WHERE e.extname = 'citus'))
					THEN 'LOGIN' END,
				CASE WHEN r.rolsuper THEN 'SUPERUSER' END,
				CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END,
				CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END,
				CASE WHEN r.rolcreatedb THEN 'CREATEDB' END,
				CASE WHEN r.rolreplication THEN 'REPLICATION' END)
		INTO fault
		FROM pg_catalog.pg_roles r WHERE r.rolname = role;
		IF NOT FOUND THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I'
									  ' NOLOGIN NOSUPERUSER NOBYPASSRLS',
									  role);
		ELSIF fault <> '' THEN
			RAISE EXCEPTION 'role % is there already, with %', role, fault
				USING ERRCODE = 'invalid_grant_operation',
					  HINT = 'Take these attributes from it, or drop it.';
		END IF;
	END LOOP;
	SELECT pg_catalog.string_agg(m.member::pg_catalog.regrole::text, ', ')
	INTO role
	FROM pg_catalog.pg_auth_members m
	WHERE m.roleid = 'entityapi_owner'::pg_catalog.regrole;
	IF role IS NOT NULL
		AND pg_catalog.to_regclass('entityapi.revision') IS NULL THEN
		RAISE WARNING 'these roles have the rights of entityapi_owner in this '
			'database, too: %', role;
	END IF;
	EXECUTE pg_catalog.format('GRANT CREATE ON DATABASE %I TO entityapi_owner',
							  pg_catalog.current_database());
END
$$;

REVOKE ALL ON SCHEMA entityapi FROM PUBLIC;
GRANT USAGE ON SCHEMA entityapi TO entityapi_client, entityapi_reader;
-- What is declared: revisions as they were applied, and the definitions
-- compiled from the last of them, which backends load

CREATE TABLE entityapi.revision (
	revision integer PRIMARY KEY,
	applied_at timestamptz NOT NULL,
	checksum text NOT NULL,
	extension_version text NOT NULL,
	documents jsonb NOT NULL,
	statements text[] NOT NULL
);

COMMENT ON TABLE entityapi.revision IS
	'Manifests as applied, one row a change; the last is in force';

CREATE TABLE entityapi.entity (
	name text PRIMARY KEY,
	collection text NOT NULL UNIQUE,
	collection_lower text NOT NULL UNIQUE,
	type text NOT NULL UNIQUE,
	definition text NOT NULL
);

COMMENT ON TABLE entityapi.entity IS
	'Compiled declarations of entities, written by apply_manifest only';

CREATE TABLE entityapi.service (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	definition text NOT NULL
);

COMMENT ON TABLE entityapi.service IS
	'Compiled declarations of the service as a whole';

CREATE TABLE entityapi.openapi_document (
	version integer PRIMARY KEY,
	made_for text NOT NULL,
	etag text NOT NULL,
	document text NOT NULL
);

/* read whole, and often: unpacking would take longer than reading more */
ALTER TABLE entityapi.openapi_document
	ALTER COLUMN document SET STORAGE EXTERNAL;

COMMENT ON TABLE entityapi.openapi_document IS
	'The description of each version, as made when manifests were last '
	'applied; made_for says what from';

SELECT pg_catalog.pg_extension_config_dump('entityapi.revision', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.entity', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.service', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.openapi_document', '');

CREATE FUNCTION entityapi.apply_manifest(
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
	AS 'MODULE_PATHNAME', 'ea_sql_apply_manifest';

COMMENT ON FUNCTION entityapi.apply_manifest(jsonb, boolean, text[]) IS
	'Make the documents the declared state; returns the statements it took';

CREATE FUNCTION entityapi.export_manifest() RETURNS jsonb
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT coalesce((SELECT r.documents
						   FROM entityapi.revision r
						  ORDER BY r.revision DESC
						  LIMIT 1), '[]')
	$$;

COMMENT ON FUNCTION entityapi.export_manifest() IS
	'The documents in force; applying them changes nothing';

CREATE FUNCTION entityapi.openapi(version integer DEFAULT 1) RETURNS json
	LANGUAGE c STABLE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_openapi';

COMMENT ON FUNCTION entityapi.openapi(integer) IS
	'The OpenAPI 3.1 document of a version of the API; null when it is not '
	'declared';
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
-- what an apply had made.
CREATE FUNCTION entityapi.list_differences(
		OUT entity text,
		OUT field text,
		OUT message text,
		OUT hint text)
	RETURNS SETOF record
	LANGUAGE c STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_list_differences';

COMMENT ON FUNCTION entityapi.list_differences() IS
	'Where tables of entities are not what is declared, and what to do';

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
-- What entities and fields were called, so that records of the audit log can
-- be read under the names of today.  A row for each name and the revisions of
-- the manifests that it was good for.  It holds what continues until now:
-- what is taken away goes from here as well, and while the log is off for
-- entities it is empty.

CREATE TABLE entityapi.past_name (
	entity text NOT NULL,
	field text NOT NULL,
	name text NOT NULL,
	first integer NOT NULL,
	last integer,
	PRIMARY KEY (entity, field, first)
);

COMMENT ON TABLE entityapi.past_name IS
	'What records of the audit log call entities and fields, by revisions';
COMMENT ON COLUMN entityapi.past_name.field IS
	'As it is called today; empty: the entity, which records call by its type';
COMMENT ON COLUMN entityapi.past_name.last IS
	'Null: it is still called so';

SELECT pg_catalog.pg_extension_config_dump('entityapi.past_name', '');
-- Tenants, accounts, sessions, signing keys
--
-- Nobody but the owner has any right on these tables.  Their rows belong to
-- the database, not to the extension, so dumps hold them.

-- A tenant that is DELETED does not exist for anybody; its row, without name
-- and slug, stays until its data are gone.  Requests that began before
-- deleted_by, the transaction that deleted it, had ended may still add to
-- them; when none of their statements goes on, that is the transaction before
-- which theirs began, and becomes NULL when there is none any more.
CREATE TABLE entityapi.tenant (
	id uuid PRIMARY KEY,
	name text NOT NULL UNIQUE,
	slug text NOT NULL UNIQUE,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED')),
	attributes jsonb NOT NULL,
	created_at timestamptz NOT NULL,
	deleted_at timestamptz,
	deleted_by xid8,
	CHECK ((status = 'DELETED') = (deleted_at IS NOT NULL))
);

CREATE INDEX tenant_deleted_at ON entityapi.tenant (deleted_at, id)
	WHERE deleted_at IS NOT NULL;

-- Whoever can have a credential.  A SuperAdmin belongs to no tenant, anybody
-- else to one.  username_key is the username as it is compared, without
-- case; a service account has no such key, so nobody can log in as one.
CREATE TABLE entityapi.account (
	id uuid PRIMARY KEY,
	tenant_id uuid REFERENCES entityapi.tenant ON DELETE CASCADE,
	kind text NOT NULL CHECK (kind IN ('USER', 'SERVICE_ACCOUNT')),
	username text NOT NULL,
	username_key text COLLATE "C" UNIQUE CHECK (username_key <> ''),
	email text,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'DISABLED')),
	roles text[] NOT NULL,
	profile jsonb NOT NULL CHECK (jsonb_typeof(profile) = 'object'),
	security_attributes jsonb NOT NULL
		CHECK (jsonb_typeof(security_attributes) = 'object'),
	password_hash text,
	password_change_required boolean NOT NULL,
	is_super_admin boolean NOT NULL,
	created_at timestamptz NOT NULL,
	last_login_at timestamptz,
	CHECK (is_super_admin = (tenant_id IS NULL)),
	CHECK (kind <> 'USER' OR username_key IS NOT NULL)
);

CREATE INDEX account_tenant_id ON entityapi.account (tenant_id, id);

-- The costs of password hashes: a login of anybody takes as long as one of the
-- highest of them.
CREATE INDEX account_hash_cost ON entityapi.account
	((pg_catalog.substr(password_hash, 5, 2) COLLATE "C"))
	WHERE password_hash IS NOT NULL;

-- A part of a profile as text that the type can read, NULL if it is no value
-- of that type.
CREATE FUNCTION entityapi.profile_value(profile jsonb, part text, type text,
										most int4, scale int4) RETURNS text
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_profile_value';

-- The rows of the entity User, where manifests declare it
CREATE FUNCTION entityapi.copy_account() RETURNS trigger
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'ea_sql_copy_account';

-- Sessions that were open when 1.0 or 1.1 was updated have a library without
-- that function.  Until a shim is restarted they go on with accounts, of which
-- there is nothing to copy, as nobody can have declared User before.
CREATE FUNCTION entityapi.copies_accounts() RETURNS boolean
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	-- Citus takes an expression that asks a table for a query of its own
	IF entityapi.version() NOT IN ('1.0', '1.1') THEN
		RETURN true;
	END IF;
	RETURN EXISTS (SELECT FROM entityapi.entity
				   WHERE definition::jsonb @> '{"accounts": true}');
END
$$;

CREATE TRIGGER copy_account
	AFTER INSERT OR DELETE OR
		UPDATE OF username, email, status, kind, profile
	ON entityapi.account
	FOR EACH ROW WHEN (entityapi.copies_accounts())
	EXECUTE FUNCTION entityapi.copy_account();

-- Authority over a tenant is kept apart from roles.
CREATE TABLE entityapi.tenant_admin (
	tenant_id uuid NOT NULL REFERENCES entityapi.tenant ON DELETE CASCADE,
	account_id uuid NOT NULL UNIQUE
		REFERENCES entityapi.account ON DELETE CASCADE,
	PRIMARY KEY (tenant_id, account_id)
);

-- One login: the family of its refresh tokens, "sid" of its access tokens.
CREATE TABLE entityapi.session (
	id uuid PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	revoked_at timestamptz,
	forced boolean NOT NULL
);

CREATE INDEX session_account_id ON entityapi.session (account_id);

CREATE TABLE entityapi.refresh_token (
	id text COLLATE "C" PRIMARY KEY,
	session_id uuid NOT NULL REFERENCES entityapi.session ON DELETE CASCADE,
	secret_hash bytea NOT NULL,
	expires_at timestamptz NOT NULL,
	used_at timestamptz
);

CREATE INDEX refresh_token_session_id ON entityapi.refresh_token (session_id);

CREATE TABLE entityapi.signing_key (
	kid text COLLATE "C" PRIMARY KEY,
	algorithm text NOT NULL,
	secret bytea NOT NULL,
	state text NOT NULL CHECK (state IN ('ACTIVE', 'RETIRED', 'REVOKED')),
	created_at timestamptz NOT NULL,
	retired_at timestamptz,
	CHECK (state <> 'RETIRED' OR retired_at IS NOT NULL)
);

-- Backends keep the keys until a change is announced to them.
CREATE FUNCTION entityapi.announce_keys() RETURNS trigger
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'ea_sql_announce_keys';

CREATE TRIGGER announce_keys
	BEFORE INSERT OR UPDATE OR DELETE ON entityapi.signing_key
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.announce_keys();

-- also where rows come by replication: a key that is revoked is to be
-- forgotten
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;

-- Lower case.  Built-in rows come with the extension, not with a dump.
CREATE TABLE entityapi.common_password (
	password text COLLATE "C" PRIMARY KEY,
	built_in boolean NOT NULL DEFAULT FALSE
);

SELECT pg_catalog.pg_extension_config_dump('entityapi.tenant', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.account', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.tenant_admin', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.session', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.refresh_token', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.signing_key', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.common_password',
										   'where not built_in');

CREATE FUNCTION entityapi.create_superadmin(username text, password text)
	RETURNS uuid
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_create_superadmin';

COMMENT ON FUNCTION entityapi.create_superadmin(text, text) IS
	'Make a platform administrator; returns the id of the account';

CREATE FUNCTION entityapi.rotate_signing_key() RETURNS text
	LANGUAGE c
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_rotate_signing_key';

COMMENT ON FUNCTION entityapi.rotate_signing_key() IS
	'Sign access tokens with a new key from now on; returns its kid';

-- Passwords that are long enough and yet tried first: digits in a row, keys
-- in a row, words with a year or a counter.
INSERT INTO entityapi.common_password (password, built_in)
SELECT pg_catalog.unnest(ARRAY[
	'!@#$%^&*()_+', '!qaz2wsx3edc', '!qaz@wsx#edc', '000000000000',
	'012345678901', '0123456789012', '098765432109', '0987654321098',
	'101010101010', '111111111111', '111222333444', '112233445566',
	'112233445566778899', '121212121212', '123123123123', '123321123321',
	'123412341234', '123456123456', '123456654321', '123456789012',
	'1234567890123', '12345678901234', '123456789012345', '1234567890123456',
	'1234567890qwertyuiop', '1234567891011', '123qwe123qwe', '123qweasdzxc',
	'147258369000', '147258369147', '159357159357', '159753159753',
	'1q2w3e4r5t6y', '1q2w3e4r5t6y7u', '1q2w3e4r5t6y7u8i',
	'1q2w3e4r5t6y7u8i9o', '1q2w3e4r5t6y7u8i9o0p', '1qaz!qaz2wsx@wsx',
	'1qaz2wsx3edc', '1qaz2wsx3edc4rfv', '1qaz@wsx3edc', '1qazxsw23edc',
	'210987654321', '222222222222', '333333333333', '444444444444',
	'555555555555', '666666666666', '741852963000', '777777777777',
	'789456123000', '789456123789', '888888888888', '987654321000',
	'987654321012', '9876543210123', '999999999999', 'a12345678900',
	'a123456789012', 'a1b2c3d4e5f6', 'a1s2d3f4g5h6', 'aa12345678900',
	'aaaaaaaaaaaa', 'abc123abc123', 'abcd12345678', 'abcdefg12345',
	'abcdefg1234567', 'abcdefgh1234', 'abcdefghijkl', 'abcdefghijklm',
	'abcdefghijklmnop', 'abcdefghijklmnopqrstuvwxyz', 'admin1234567',
	'admin12345678', 'admin123456789', 'admin123admin', 'admin@123456',
	'adminadminadmin', 'administrator', 'administrator1', 'administrator123',
	'adminpassword', 'adminpassword1', 'arsenal12345', 'asdf12345678',
	'asdfasdfasdf', 'asdfghjkl123', 'asdfghjkl1234', 'asdfghjklzxcvbnm',
	'asdfqwerzxcv', 'autumn123456', 'azertyuiop12', 'azertyuiop123',
	'azertyuiopqsdfghjklm', 'barcelona123', 'baseball1234', 'basketball12',
	'basketball123', 'batman123456', 'blessed12345', 'business1234',
	'changeitnow1', 'changeme1234', 'changeme12345', 'changemeplease',
	'charlie12345', 'chelsea12345', 'company12345', 'company123456',
	'computer1234', 'computer12345', 'contrasena12', 'contrasena123',
	'correct horse battery staple', 'correcthorsebatterystaple',
	'corvette1234', 'database1234', 'december1234', 'december2024',
	'default12345', 'defaultpassword', 'demopassword', 'dragon123456',
	'entityapi123', 'entityapi1234', 'everything12', 'ferrari12345',
	'football1234', 'football12345', 'forgetmenot1', 'freedom12345',
	'godblessyou1', 'godislove123', 'guestguest12', 'haslo1234567',
	'iloveyou1234', 'iloveyou12345', 'iloveyoubaby', 'iloveyouforever',
	'iloveyouiloveyou', 'iloveyousomuch', 'internet1234', 'internet12345',
	'january12345', 'jennifer1234', 'jessica12345', 'jesuschrist1',
	'jesusislord1', 'jordan123456', 'juventus1234', 'letmein12345',
	'letmein123456', 'letmeinletmein', 'letmeinplease', 'liverpool123',
	'liverpool1234', 'lovelovelove', 'loveyouforever', 'manchester12',
	'manchesterunited', 'mercedes1234', 'michael12345', 'monkey123456',
	'motdepasse12', 'motdepasse123', 'mylove123456', 'mynameis1234',
	'mypassword12', 'mypassword123', 'mypassword1234', 'newpassword1',
	'newpassword12', 'newpassword123', 'nopassword12', 'nothing12345',
	'november1234', 'november2024', 'oldpassword1', 'opensesame12',
	'p455w0rd1234', 'p@ssw0rd1234', 'p@ssw0rd12345', 'p@ssword1234',
	'pa$$word1234', 'pa55word1234', 'parola123456', 'passpasspass',
	'passphrase12', 'passphrase123', 'passw0rd1234', 'password1234',
	'password12345', 'password123456', 'password1password', 'passwordabcd',
	'passwordpassword', 'passwort1234', 'passwort12345', 'pleasechangeme',
	'pokemon12345', 'postgres1234', 'postgrespassword', 'postgresql12',
	'princess1234', 'princess12345', 'q1w2e3r4t5y6', 'q1w2e3r4t5y6u7',
	'q1w2e3r4t5y6u7i8', 'qazwsxedcrfv', 'qazwsxedcrfvtgb', 'qwe123qwe123',
	'qweasdzxc123', 'qweasdzxcrty', 'qwer12345678', 'qwer1234asdf',
	'qwer1234qwer', 'qwerty123456', 'qwerty1234567', 'qwerty12345678',
	'qwerty123456789', 'qwertyqwerty', 'qwertyuiop!@#$', 'qwertyuiop12',
	'qwertyuiop123', 'qwertyuiop1234', 'qwertyuiop1234567890', 'qwertyuiop[]',
	'qwertyuiopas', 'qwertyuiopasdfghjkl', 'qwertyuiopasdfghjklzxcvbnm',
	'qwertzuiop12', 'qwertzuiopas', 'realmadrid12', 'rootpassword',
	'rootrootroot', 'samsung12345', 'secret123456', 'secretpassword',
	'secretsecret', 'security1234', 'security12345', 'senha1234567',
	'september123', 'spiderman123', 'spring123456', 'starwars1234',
	'summer123456', 'summer2024!!', 'sunshine1234', 'sunshine12345',
	'superadmin123', 'superadministrator', 'superman1234', 'superman12345',
	'superuser123', 'systemadmin1', 'temporary123', 'temporarypassword',
	'temppassword', 'temppassword1', 'test12345678', 'test123456789',
	'testing12345', 'testing123456', 'testpassword', 'testpassword1',
	'testtesttest', 'thisisapassword', 'thisismypassword', 'trustno1trustno1',
	'unbelievable', 'user12345678', 'userpassword', 'useruseruser',
	'wachtwoord12', 'wachtwoord123', 'welcome12345', 'welcome123456',
	'welcome@1234', 'welcomewelcome', 'whatever1234', 'winter123456',
	'winter2024!!', 'xxxxxxxxxxxx', 'yourpassword', 'zaq12wsxcde3',
	'zaq1xsw2cde3', 'zxcv12345678', 'zxcvbnm12345', 'zxcvbnm123456',
	'zxcvbnmasdfghjkl', 'zzzzzzzzzzzz'
]), true;
-- Service accounts, personal API keys, invites, throttling

-- What an account of the kind SERVICE_ACCOUNT has besides.
CREATE TABLE entityapi.service_account (
	account_id uuid PRIMARY KEY
		REFERENCES entityapi.account ON DELETE CASCADE,
	client_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	last_used_at timestamptz
);

-- A delegation of its owner's identity: roles and attributes that were his
-- when the key was made, and have to be his whenever it is used.
CREATE TABLE entityapi.personal_api_key (
	id uuid PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	token_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	name text NOT NULL,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'DISABLED', 'REVOKED')),
	roles text[] NOT NULL,
	security_attributes jsonb NOT NULL
		CHECK (jsonb_typeof(security_attributes) = 'object'),
	expires_at timestamptz,
	created_at timestamptz NOT NULL,
	last_used_at timestamptz
);

CREATE INDEX personal_api_key_account_id
	ON entityapi.personal_api_key (account_id);

-- One row for each tenant that has settings of its own, and one without a
-- tenant for all others.  NULL means: as the others.
CREATE TABLE entityapi.personal_api_key_setting (
	tenant_id uuid UNIQUE NULLS NOT DISTINCT
		REFERENCES entityapi.tenant ON DELETE CASCADE,
	enabled boolean,
	allow_non_expiring boolean
);

CREATE TABLE entityapi.invite (
	id uuid PRIMARY KEY,
	tenant_id uuid NOT NULL REFERENCES entityapi.tenant ON DELETE CASCADE,
	token_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	email text NOT NULL,
	username text NOT NULL,
	roles text[] NOT NULL,
	status text NOT NULL CHECK (status IN ('PENDING', 'ACCEPTED')),
	expires_at timestamptz NOT NULL,
	created_at timestamptz NOT NULL
);

CREATE INDEX invite_tenant_id ON entityapi.invite (tenant_id, id);

-- Failed logins.  What was typed as a name may be a password, so there is
-- only a hash of it; an IPv6 address stands for its /64.
CREATE TABLE entityapi.login_throttle (
	username_hash bytea PRIMARY KEY,
	failures int NOT NULL,
	last_failure_at timestamptz NOT NULL
);

CREATE INDEX login_throttle_last_failure_at
	ON entityapi.login_throttle (last_failure_at);

CREATE TABLE entityapi.address_failure (
	address inet NOT NULL,
	failed_at timestamptz NOT NULL
);

CREATE INDEX address_failure_address
	ON entityapi.address_failure (address, failed_at);
CREATE INDEX address_failure_failed_at
	ON entityapi.address_failure (failed_at);

-- Where users have logged in from, which the failures of others do not close
-- to them: a hash of the username and the address together, so neither can be
-- read from it.
CREATE TABLE entityapi.login_origin (
	origin_hash bytea PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	succeeded_at timestamptz NOT NULL,
	failures int NOT NULL,
	failed_at timestamptz
);

CREATE INDEX login_origin_account_id ON entityapi.login_origin (account_id);
CREATE INDEX login_origin_succeeded_at
	ON entityapi.login_origin (succeeded_at);

-- What has ended is looked for by its end.
CREATE INDEX session_expires_at ON entityapi.session (expires_at);
CREATE INDEX session_revoked_at ON entityapi.session (revoked_at)
	WHERE revoked_at IS NOT NULL;
CREATE INDEX refresh_token_expires_at ON entityapi.refresh_token (expires_at);

SELECT pg_catalog.pg_extension_config_dump('entityapi.service_account', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.personal_api_key', '');
SELECT pg_catalog.pg_extension_config_dump(
		'entityapi.personal_api_key_setting', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.invite', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.login_throttle', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.login_origin', '');

CREATE FUNCTION entityapi.revoke_signing_key(kid text) RETURNS boolean
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_revoke_signing_key';

COMMENT ON FUNCTION entityapi.revoke_signing_key(text) IS
	'Believe no token of a signing key any more; false if there is none';

CREATE FUNCTION entityapi.sweep(max_rows int DEFAULT 1000) RETURNS bigint
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_sweep';

COMMENT ON FUNCTION entityapi.sweep(int) IS
	'Delete ended sessions, used-up tokens and forgotten failures, at most so '
	'many of each, and some rows of deleted tenants; 0 when nothing is left';
-- The languages of the API, as tools for developers

CREATE FUNCTION entityapi.parse_rsql(filter text) RETURNS jsonb
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_parse_rsql';

COMMENT ON FUNCTION entityapi.parse_rsql(text) IS
	'How a filter is understood: its tree, or an error with the position';

REVOKE ALL ON FUNCTION entityapi.parse_rsql(text) FROM PUBLIC;

CREATE FUNCTION entityapi.check_expression(expression text) RETURNS jsonb
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_check_expression';

COMMENT ON FUNCTION entityapi.check_expression(text) IS
	'How a policy expression is understood: its tree, or an error with the '
	'position';
-- The audit log: who did what, and what was refused
--
-- One partition a month, by UTC.  They are made at run time, a while ahead,
-- by whoever writes a record, so that they are ordinary tables: a dump holds
-- them as they are, and restoring finds none of them in its way.  For the
-- same reason the parent has no index of its own; all partitions are made
-- like audit_default, which also takes the records for which no partition
-- could be made in time.

CREATE TABLE entityapi.audit (
	id uuid NOT NULL,
	at timestamptz NOT NULL,
	tenant_id uuid,
	actor_id text,
	actor_kind text,
	actor_username text,
	actor_key_id text,
	action text NOT NULL,
	outcome text NOT NULL,
	target_type text,
	target_id text,
	changes json,
	request_id text,
	ip inet,
	detail text,
	version bigint,
	revision integer
) PARTITION BY RANGE (at);

COMMENT ON TABLE entityapi.audit IS
	'Records of writes, events and refusals; append-only';
COMMENT ON COLUMN entityapi.audit.version IS
	'That the target had afterwards, if it is locked optimistically';
COMMENT ON COLUMN entityapi.audit.revision IS
	'Of the manifests: under its names the record was written';

CREATE TABLE entityapi.audit_default PARTITION OF entityapi.audit DEFAULT;

ALTER TABLE entityapi.audit_default ADD PRIMARY KEY (at, id);
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id);
CREATE INDEX ON entityapi.audit_default (target_id, at, id);
CREATE INDEX ON entityapi.audit_default (actor_id, at, id);
CREATE INDEX ON entityapi.audit_default (action, at, id)
	WHERE action !~~ 'ENTITY%ATE';
-- it is looked for alone, and never in an order
CREATE INDEX ON entityapi.audit_default (request_id text_pattern_ops);
CREATE INDEX ON entityapi.audit_default (at, id) WHERE outcome <> 'SUCCESS';
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id)
	WHERE outcome <> 'SUCCESS';

CREATE FUNCTION entityapi.refuse_audit_change() RETURNS trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	RAISE EXCEPTION 'the audit log is append-only'
		USING ERRCODE = 'insufficient_privilege';
END
$$;

-- Statement triggers hold for statements that find no row, too.  Those of the
-- parent guard statements over all of it, those of a partition the rest, and
-- none of them can be avoided by pretending to replicate.
CREATE TRIGGER append_only
	BEFORE UPDATE OR DELETE OR TRUNCATE ON entityapi.audit
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.refuse_audit_change();
ALTER TABLE entityapi.audit ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER append_only
	BEFORE UPDATE OR DELETE OR TRUNCATE ON entityapi.audit_default
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.refuse_audit_change();
ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;

-- Whether Citus has the log: 60_distribution.sql
CREATE FUNCTION entityapi.audit_is_distributed() RETURNS boolean
	LANGUAGE plpgsql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
		RETURN false;
	END IF;
	RETURN EXISTS (SELECT FROM pg_dist_partition
				   WHERE logicalrelid = 'entityapi.audit'::regclass);
END
$$;

-- What Citus does for this transaction on other nodes waits there no longer
-- than here.
CREATE FUNCTION entityapi.carry_lock_timeout() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM set_config('citus.propagate_set_commands', 'local', true);
	EXECUTE format('SET LOCAL lock_timeout = %L',
				   current_setting('lock_timeout'));
	PERFORM set_config('citus.propagate_set_commands', 'none', true);
END
$$;

-- The same for a table of the log as it is.  Shards get no trigger that is for
-- TRUNCATE as well.
CREATE FUNCTION entityapi.guard_audit(part regclass) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	guard text[];
BEGIN
	FOREACH guard SLICE 1 IN ARRAY
		CASE WHEN entityapi.audit_is_distributed() THEN
			ARRAY[['append_only', 'UPDATE OR DELETE'],
				  ['append_only_all', 'TRUNCATE']]
		ELSE
			ARRAY[['append_only', 'UPDATE OR DELETE OR TRUNCATE']]
		END
	LOOP
		EXECUTE format('CREATE TRIGGER %I BEFORE %s ON %s FOR EACH STATEMENT'
					   ' EXECUTE FUNCTION entityapi.refuse_audit_change()',
					   guard[1], guard[2], part);
		EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', part,
					   guard[1]);
	END LOOP;
END
$$;

SELECT pg_catalog.pg_extension_config_dump('entityapi.audit_default', '');

-- The log is the installer's, its owner's only to read and to add to.  So the
-- functions that make and drop its months run with the installer's rights, and
-- under settings that leave nothing to the session that calls: bounds pass
-- through text.

-- One session at a time makes or drops months.  False: another one does.
CREATE FUNCTION entityapi.take_audit_turn(wait boolean) RETURNS boolean
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_audit_turn';

CREATE FUNCTION entityapi.note_purge(detail text) RETURNS void
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_note_purge';

-- The partition of a month, given by its first moment in UTC.  Records of the
-- month that had to go to audit_default move over.
CREATE FUNCTION entityapi.make_audit_partition(month timestamp) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET datestyle = 'ISO, YMD'
	SET timezone = 'UTC'
	SET default_tablespace = ''
	SET default_table_access_method = 'heap'
	AS $$
DECLARE
	name text := to_char(month, '"audit_"YYYY_MM');
	first timestamptz := month AT TIME ZONE 'UTC';
	beyond timestamptz := (month + interval '1 month') AT TIME ZONE 'UTC';
	moved boolean := false;
BEGIN
	IF entityapi.audit_is_distributed() THEN
		PERFORM set_config('citus.multi_shard_modify_mode', 'sequential',
						   true),
				set_config('citus.enable_unsafe_triggers', 'on', true),
				entityapi.carry_lock_timeout();
	END IF;
	EXECUTE format('CREATE TABLE entityapi.%I'
				   ' (LIKE entityapi.audit_default INCLUDING ALL)', name);

	-- nobody adds any once the trigger is off
	IF EXISTS (SELECT 1 FROM entityapi.audit_default
			   WHERE at >= first AND at < beyond) THEN
		ALTER TABLE entityapi.audit_default DISABLE TRIGGER append_only;
		EXECUTE format('INSERT INTO entityapi.%I'
					   ' SELECT * FROM entityapi.audit_default'
					   ' WHERE at >= $1 AND at < $2', name)
			USING first, beyond;
		DELETE FROM entityapi.audit_default WHERE at >= first AND at < beyond;
		ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;
		moved := true;
	END IF;
	PERFORM entityapi.guard_audit(format('entityapi.%I', name)::regclass);
	EXECUTE format('GRANT SELECT ON entityapi.%I TO entityapi_owner', name);
	EXECUTE format('ALTER TABLE entityapi.audit ATTACH PARTITION entityapi.%I'
				   ' FOR VALUES FROM (%L) TO (%L)', name, first, beyond);
	IF moved AND entityapi.audit_is_distributed() THEN
		EXECUTE format('ALTER TABLE entityapi.%I'
					   ' DISABLE TRIGGER append_only_all', name);
		PERFORM truncate_local_data_after_distributing_table(
					format('entityapi.%I', name));
		EXECUTE format('ALTER TABLE entityapi.%I'
					   ' ENABLE ALWAYS TRIGGER append_only_all', name);
	END IF;
END
$$;

-- Whoever finds the month of a record missing waits for his turn to make it;
-- a later one is made by one session, and the others go on.
CREATE FUNCTION entityapi.extend_audit(at timestamptz, ahead int)
	RETURNS void
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET timezone = 'UTC'
	SET lock_timeout = '1s'
	AS $$
DECLARE
	month timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
BEGIN
	-- with these a month has a name, and so have those after it
	IF (at >= '0001-01-01 00:00:00+00'
		AND at < '9900-01-01 00:00:00+00') IS NOT TRUE THEN
		RAISE EXCEPTION 'extend_audit makes months of the years 1 to 9899'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF (ahead BETWEEN 0 AND 120) IS NOT TRUE THEN
		RAISE EXCEPTION 'extend_audit makes 120 months ahead at most'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM'))
		IS NULL THEN
		PERFORM entityapi.take_audit_turn(true);
	ELSIF NOT entityapi.take_audit_turn(false) THEN
		RETURN;
	END IF;
	FOR i IN 0 .. ahead LOOP
		IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM'))
			IS NULL THEN
			PERFORM entityapi.make_audit_partition(month);
		END IF;
		month := month + interval '1 month';
	END LOOP;
END
$$;

COMMENT ON FUNCTION entityapi.extend_audit(timestamptz, int) IS
	'Make the partitions of a month and of those after it; called as needed';

CREATE FUNCTION entityapi.purge_audit(before timestamptz) RETURNS SETOF text
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET timezone = 'UTC'
	SET lock_timeout = '10s'
	AS $$
DECLARE
	bound timestamp := least(before, now()) AT TIME ZONE 'UTC';
	kept timestamptz := date_trunc('month', bound) AT TIME ZONE 'UTC';
	month timestamp;
	name text;
	names text[];
	records bigint;
	partitions bigint := 0;
	total bigint := 0;
BEGIN
	IF before IS NULL THEN
		RAISE EXCEPTION
			'purge_audit needs the time before which records may go'
			USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM entityapi.take_audit_turn(true);
	IF entityapi.audit_is_distributed() THEN
		PERFORM set_config('citus.multi_shard_modify_mode', 'sequential',
						   true),
				set_config('citus.enable_unsafe_triggers', 'on', true),
				entityapi.carry_lock_timeout();
	END IF;

	-- what is in audit_default goes by months as well, of whatever time it
	-- says to be: a table of its own for each is what not every time can have
	IF EXISTS (SELECT 1 FROM entityapi.audit_default d WHERE d.at < kept) THEN
		ALTER TABLE entityapi.audit_default DISABLE TRIGGER append_only;
		SELECT array_agg(c.month ORDER BY c.month), sum(c.n) INTO names, total
		FROM (
			SELECT coalesce(to_char(d.at AT TIME ZONE 'UTC',
									'"audit_"YYYY_MM'),
							'audit_default') AS month, count(*) AS n
			FROM entityapi.audit_default d WHERE d.at < kept
			GROUP BY 1
		) c;
		DELETE FROM entityapi.audit_default WHERE at < kept;
		ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;
		partitions := cardinality(names);
		RETURN QUERY SELECT unnest(names);
	END IF;

	FOREACH name IN ARRAY ARRAY(
		SELECT c.relname
		FROM pg_inherits i
		JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'entityapi.audit'::regclass
		  AND c.relname ~ '^audit_[0-9]{4}_[0-9]{2}$'
		ORDER BY c.relname) LOOP
		month := make_timestamp(substr(name, 7, 4)::int,
								substr(name, 12, 2)::int, 1, 0, 0, 0);
		EXIT WHEN month + interval '1 month' > bound;
		EXECUTE format('SELECT count(*) FROM entityapi.%I', name) INTO records;
		EXECUTE format('DROP TABLE entityapi.%I', name);
		partitions := partitions + 1;
		total := total + records;
		RETURN NEXT name;
	END LOOP;

	PERFORM entityapi.note_purge(
		format('%s months with %s records, all from before %s',
			   partitions, total,
			   to_char(bound, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
END
$$;

COMMENT ON FUNCTION entityapi.purge_audit(timestamptz) IS
	'Drop the months that ended before a time, and leave a record of it';
-- Plain SQL as a reader: who asks, and what the policies on the tables call
--
-- The functions look things up as entityapi_owner, and any reader may call
-- them, so that none may go by the search path of its caller.
--
-- A role is mapped by name and oid: one that gets the name later is another.
-- Dumps have both, so in another cluster, where the role of that name has
-- another oid, it sees nothing until it is mapped again.

CREATE TABLE entityapi.mapped_role (
	role text PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	role_oid oid,
	node_oids jsonb
);

COMMENT ON COLUMN entityapi.mapped_role.node_oids IS
	'With Citus: the oids that it has, by the groups of nodes';

SELECT pg_catalog.pg_extension_config_dump('entityapi.mapped_role', '');

CREATE FUNCTION entityapi.map_role(role name, username text) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_map_role';

COMMENT ON FUNCTION entityapi.map_role(name, text) IS
	'Let a login that is a member of entityapi_reader see what this user '
	'sees; null ends it';

CREATE FUNCTION entityapi.set_principal(principal jsonb) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_set_principal';

COMMENT ON FUNCTION entityapi.set_principal(jsonb) IS
	'Let this session see what the principal sees, until the next call; for '
	'those it is granted to';

-- What policies call has its path pinned in C: declared, that would cost each
-- call more than the answer does that it remembers.
CREATE FUNCTION entityapi.current_tenant() RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_current_tenant';

CREATE FUNCTION entityapi.caller_reads(entity text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_reads';

CREATE FUNCTION entityapi.caller_bypasses(entity text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_bypasses';

-- The tenant whose rows of an entity the roles of the caller let him read
CREATE FUNCTION entityapi.readable_tenant(entity text) RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_readable_tenant';

-- Whether a request of the caller would show him the row with this id
CREATE FUNCTION entityapi.caller_sees(entity text, id uuid) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_sees';

CREATE FUNCTION entityapi.caller_boolean(property text, key text)
	RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_boolean';

CREATE FUNCTION entityapi.caller_number(property text, key text)
	RETURNS numeric
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_number';

CREATE FUNCTION entityapi.caller_text(property text, key text) RETURNS text
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_text';

CREATE FUNCTION entityapi.caller_uuid(property text, key text) RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_uuid';

CREATE FUNCTION entityapi.caller_date(property text, key text) RETURNS date
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_date';

CREATE FUNCTION entityapi.caller_datetime(property text, key text)
	RETURNS timestamptz
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_datetime';

CREATE FUNCTION entityapi.caller_texts(property text, key text) RETURNS text[]
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_texts';

CREATE FUNCTION entityapi.caller_known(property text, key text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_known';
-- A part of a cluster's tenants moves, or is divided, while it is written to
--
-- PostgreSQL replicates to the new place then what is written meanwhile, each
-- owner's tables by themselves, and the log is the installer's where all else
-- is entityapi_owner's.  Citus waits for what it hears of: replication that
-- has not begun, or has failed, is not counted, and its rows would be lost.
-- So each node looks for itself, before a statement that Citus sends to make
-- an index, or a key.  Keys are the last that it makes, when nobody can write
-- any more, and if that fails all is as it was before.
--
-- It also says what there is to do first where the extension is to be dropped,
-- since Citus fails at that with words of its own.
--
-- Nobody but the installer calls these.

CREATE FUNCTION entityapi.await_replication() RETURNS event_trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	last bool := current_setting('citus.skip_constraint_validation', true)
		= 'on';
	until timestamptz := clock_timestamp()
		+ CASE WHEN last THEN interval '10s' ELSE interval '30s' END;
	behind text;
	ends jsonb;
BEGIN
	IF tg_tag = 'DROP EXTENSION' THEN
		IF current_query() ~* '[[:<:]]entityapi[[:>:]]'
			AND EXISTS (SELECT FROM pg_dist_partition
						WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
			RAISE EXCEPTION 'Citus has the tables of the service'
				USING ERRCODE = 'dependent_objects_still_exist',
					HINT = 'Apply "distribution: none" first.';
		END IF;
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_subscription
				   WHERE subname ~ '^citus_shard_') THEN
		RETURN;
	END IF;
	LOOP
		-- those of one move have a number at the end and one source, from
		-- where they all get as far as the first of them has
		WITH found AS (
			SELECT s.subname, substring(s.subname FROM '[0-9]+$') AS move,
				   w.latest_end_lsn AS place
			FROM pg_subscription s
			JOIN pg_database d ON d.oid = s.subdbid
			LEFT JOIN pg_stat_subscription w ON w.subid = s.oid
			WHERE d.datname = current_database() AND s.subenabled
			  AND s.subname ~ '^citus_shard_'
		), farthest AS (
			SELECT f.move, max(f.place) AS place FROM found f GROUP BY f.move
		)
		SELECT string_agg(f.subname, ', ') FILTER (
					WHERE f.place IS NULL
					   OR last AND f.place < coalesce(
							(ends ->> f.move)::pg_lsn, m.place)),
			   coalesce(ends, jsonb_object_agg(m.move, m.place)
							FILTER (WHERE m.place IS NOT NULL))
		INTO behind, ends
		FROM found f JOIN farthest m USING (move);
		EXIT WHEN behind IS NULL;
		IF clock_timestamp() > until THEN
			RAISE EXCEPTION 'rows would be lost, as they are not replicated '
				'to this node: %', behind
				USING ERRCODE = 'object_not_in_prerequisite_state',
					HINT = 'The log of this node says why. Repeat it, or use '
						'''block_writes''.';
		END IF;
		PERFORM pg_sleep(0.02);
	END LOOP;
END
$$;

-- Of each node; on those that come later the extension is made with it.  It is
-- the extension's, and goes with it.
CREATE FUNCTION entityapi.guard_moves() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_event_trigger
				   WHERE evtname = 'entityapi_await_replication') THEN
		CREATE EVENT TRIGGER entityapi_await_replication
			ON ddl_command_start
			WHEN TAG IN ('ALTER TABLE', 'CREATE INDEX', 'DROP EXTENSION')
			EXECUTE FUNCTION entityapi.await_replication();
		ALTER EVENT TRIGGER entityapi_await_replication ENABLE ALWAYS;
	END IF;
	IF NOT entityapi.guard_is_member() THEN
		ALTER EXTENSION entityapi
			ADD EVENT TRIGGER entityapi_await_replication;
	END IF;
END
$$;

CREATE FUNCTION entityapi.unguard_moves() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF entityapi.guard_is_member() THEN
		ALTER EXTENSION entityapi
			DROP EVENT TRIGGER entityapi_await_replication;
	END IF;
	DROP EVENT TRIGGER IF EXISTS entityapi_await_replication;
END
$$;

CREATE FUNCTION entityapi.guard_is_member() RETURNS boolean
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT EXISTS (SELECT FROM pg_event_trigger t
					   JOIN pg_depend m ON m.objid = t.oid AND m.deptype = 'e'
						AND m.classid = 'pg_event_trigger'::regclass
					   WHERE t.evtname = 'entityapi_await_replication')
	$$;
-- What nodes of a cluster take for declarations
--
-- There entityapi_owner can write them, since Citus wants one role for all
-- that lies together, and so could its members by statements of their own.  So
-- the installer announces what a change is going to write, by hashes of the
-- rows, and each node refuses all else of who is no superuser.  On one node
-- nothing of this is used.
--
-- What is announced is for the change that is under way, and for no other: by
-- then it has written a row that each node has, and is known there by the
-- number that PostgreSQL has given it.  If it fails, or is undone, nobody sees
-- that row any more, and the hashes that are left admit nothing.
--
-- Nobody but the installer calls these.

-- One row, on each node; a change of the declarations writes it first.
CREATE TABLE entityapi.declaring (
	present boolean PRIMARY KEY CHECK (present)
);

INSERT INTO entityapi.declaring VALUES (true);

COMMENT ON TABLE entityapi.declaring IS
	'A row that each node of a cluster has, by which a change is known there';

-- Not with Citus: each node has what its own numbers say.
CREATE TABLE entityapi.announced (
	seal text PRIMARY KEY,
	writer xid NOT NULL
);

COMMENT ON TABLE entityapi.announced IS
	'Hashes of the declarations that this node of a cluster lets be written';
COMMENT ON COLUMN entityapi.announced.writer IS
	'By whom, as the row of declaring tells: the (sub)transaction';

-- kind: a table, with + for a row that comes, - for one that goes
CREATE FUNCTION entityapi.seal(kind text, declared jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT encode(sha256(convert_to(
			kind || (declared - 'applied_at')::text, 'UTF8')), 'hex')
	$$;

-- By other sessions, whose transactions are over before the caller writes.
CREATE FUNCTION entityapi.announce(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	failed text;
BEGIN
	SELECT string_agg(format('%s:%s: %s', n.nodename, n.nodeport, r.result),
					  ', ') INTO failed
	FROM run_command_on_all_nodes(
			format('SELECT entityapi.announce_here(%L)', seals)) r
	JOIN pg_dist_node n USING (nodeid)
	WHERE NOT r.success;
	IF failed IS NOT NULL THEN
		RAISE EXCEPTION 'the nodes cannot be told what is to be declared: %',
			failed
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
END
$$;

-- The part that this node has of declaring
CREATE FUNCTION entityapi.declaring_here() RETURNS text
	LANGUAGE plpgsql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text;
BEGIN
	SELECT format('entityapi.declaring_%s', s.shardid) INTO STRICT name
	FROM pg_dist_shard s
	WHERE s.logicalrelid = 'entityapi.declaring'::regclass;
	RETURN name;
END
$$;

-- Who is about to declare has a turn here (EA_TURN_DECLARING), and has written
-- the row by the latest of the numbers that he has.
CREATE FUNCTION entityapi.announce_here(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	his xid;
BEGIN
	SELECT own.transactionid INTO STRICT his
	FROM pg_locks turn
	JOIN pg_database d ON d.oid = turn.database
		AND d.datname = current_database()
	JOIN pg_locks own ON own.pid = turn.pid
		AND own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock'
		AND own.granted
	WHERE turn.locktype = 'advisory' AND turn.granted
	  AND turn.classid = 0 AND turn.objid = 0
	  AND turn.objsubid = x'EA15'::int - 65536
	ORDER BY age(own.transactionid) LIMIT 1;
	DELETE FROM entityapi.announced;
	INSERT INTO entityapi.announced (seal, writer)
	SELECT DISTINCT s.seal, his FROM unnest(seals) s (seal);
END
$$;

CREATE FUNCTION entityapi.is_announced(seals text[]) RETURNS boolean
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	found bigint;
BEGIN
	-- within a statement of Citus none other may go by it
	EXECUTE format('SELECT count(*) FROM entityapi.announced a'
				   ' JOIN %s d ON d.xmin = a.writer WHERE a.seal = ANY ($1)',
				   entityapi.declaring_here()) INTO found USING seals;
	RETURN found = cardinality(seals);
END
$$;

-- A trigger of the parts that nodes have of what is declared.  Who writes is
-- asked for his own rights, whatever those of the session are.
CREATE FUNCTION entityapi.refuse_unannounced() RETURNS trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	declares text := regexp_replace(tg_table_name, '_[0-9]+$', '');
	wanted text[] := '{}';
BEGIN
	IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = CURRENT_USER) THEN
		RETURN coalesce(new, old);
	END IF;
	IF tg_op <> 'INSERT' THEN
		wanted := wanted || entityapi.seal('-' || declares, to_jsonb(old));
	END IF;
	IF tg_op <> 'DELETE' THEN
		wanted := wanted || entityapi.seal('+' || declares, to_jsonb(new));
	END IF;
	IF NOT entityapi.is_announced(wanted) THEN
		RAISE EXCEPTION 'declarations are written by apply_manifest() alone'
			USING ERRCODE = 'insufficient_privilege';
	END IF;
	RETURN coalesce(new, old);
END
$$;

-- While they are with Citus
CREATE FUNCTION entityapi.guard_declarations(guarded boolean) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	own regclass;
BEGIN
	FOREACH own IN ARRAY '{entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name}'::regclass[]
	LOOP
		EXECUTE format('DROP TRIGGER IF EXISTS refuse_unannounced ON %s', own);
		IF guarded THEN
			EXECUTE format('CREATE TRIGGER refuse_unannounced'
						   ' BEFORE INSERT OR UPDATE OR DELETE ON %s'
						   ' FOR EACH ROW EXECUTE FUNCTION'
						   ' entityapi.refuse_unannounced()', own);
		END IF;
	END LOOP;
END
$$;
-- A cluster of Citus, where the Service document says so: what
-- apply_manifest() does with the tables of the extension, the installer's
--
-- Identity and declarations are there whole on every node (reference tables).
-- The audit log is distributed by tenant, and every table of an entity with
-- tenants lies beside it; a record of no tenant has the UUID of zeros.
-- Nothing of this exists without Citus, so its functions are named at run time
-- only.
--
-- Nobody but the installer calls these.

-- The tables of the extension by themselves, that is without the months of the
-- audit log, and without what each node has for itself
CREATE FUNCTION entityapi.list_own_tables() RETURNS SETOF regclass
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT c.oid::regclass
		FROM pg_class c
		JOIN pg_depend m ON m.classid = 'pg_class'::regclass
			AND m.objid = c.oid AND m.deptype = 'e'
			AND m.refclassid = 'pg_extension'::regclass
		JOIN pg_extension e ON e.oid = m.refobjid
		WHERE e.extname = 'entityapi' AND c.relkind = 'r'
		  AND NOT c.relispartition AND c.relname <> 'announced'
		ORDER BY c.relname COLLATE "C"
	$$;

-- The audit log and its partitions
CREATE FUNCTION entityapi.list_audit_tables() RETURNS SETOF regclass
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT 'entityapi.audit'::regclass
		UNION ALL
		(SELECT i.inhrelid::regclass
		 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE i.inhparent = 'entityapi.audit'::regclass
		 ORDER BY c.relname COLLATE "C")
	$$;

-- What stands against a distribution, with tables in these schemas.  As it
-- says what other nodes are like, it is asked before anything is changed.
CREATE FUNCTION entityapi.list_citus_faults(schemas text[], OUT message text,
											OUT hint text)
	RETURNS SETOF record
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	node record;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
		RETURN QUERY VALUES ('Citus is not installed in this database',
			'CREATE EXTENSION citus, in this database of each node');
		RETURN;
	END IF;
	IF current_setting('citus.shard_count', true) IS NULL THEN
		RETURN QUERY VALUES ('Citus is not loaded',
			'add citus to shared_preload_libraries, in the first place');
		RETURN;
	END IF;
	IF NOT citus_is_coordinator() THEN
		RETURN QUERY VALUES ('this node is not the coordinator',
			'apply where the others were added with citus_add_node()');
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0) THEN
		RETURN QUERY VALUES ('the coordinator is no node of the cluster',
			'SELECT citus_set_coordinator_host(), with its name as the others '
			'know it');
		RETURN;
	END IF;
	IF entityapi.audit_is_distributed() THEN
		RETURN QUERY
			SELECT format('the role %s may not log in, as Citus does on each '
						  'node', r.rolname),
				   format('ALTER ROLE %I LOGIN', r.rolname)
			FROM pg_roles r
			WHERE r.rolname IN ('entityapi_owner', 'entityapi_reader')
			  AND NOT r.rolcanlogin
			ORDER BY r.rolname;
	END IF;
	FOR node IN
		SELECT n.nodename || ':' || n.nodeport AS name, r.success, r.result,
			   r.result::jsonb ->> 'walLevel' AS wal_level,
			   r.result::jsonb ->> 'version' AS version,
			   CASE WHEN n.groupid <> 0 THEN r.result::jsonb -> 'schemas' END
					AS schemas
		FROM (
			SELECT a.nodeid, a.success,
				   CASE WHEN a.success THEN a.result
						ELSE jsonb_build_object('error', a.result)::text
				   END AS result
			FROM run_command_on_all_nodes(format(
				$c$SELECT pg_catalog.jsonb_build_object(
					'walLevel', pg_catalog.current_setting('wal_level'),
					'version', (SELECT extversion
						FROM pg_catalog.pg_extension
						WHERE extname OPERATOR(pg_catalog.=) 'entityapi'),
					'schemas', (SELECT coalesce(
							pg_catalog.jsonb_object_agg(n.nspname, o.rolname),
							'{}')
						FROM pg_catalog.pg_namespace n
						JOIN pg_catalog.pg_roles o
							ON o.oid OPERATOR(pg_catalog.=) n.nspowner
						WHERE n.nspname OPERATOR(pg_catalog.=)
								ANY (%L::pg_catalog.text[])
						  AND NOT o.rolsuper
						  AND o.rolname OPERATOR(pg_catalog.<>) ALL
								('{entityapi_owner,pg_database_owner}')))$c$,
				schemas)) a) r
		JOIN pg_dist_node n USING (nodeid)
		ORDER BY n.nodename, n.nodeport
	LOOP
		IF NOT node.success THEN
			RETURN QUERY VALUES (
				format('the node %s does not answer: %s', node.name,
					   node.result::jsonb ->> 'error'), NULL);
			CONTINUE;
		END IF;
		IF node.version IS DISTINCT FROM entityapi.version() THEN
			RETURN QUERY VALUES (
				format('the node %s has %s', node.name,
					   coalesce('entityapi ' || node.version,
								'no extension entityapi')),
				'install the same version there, and update the extension');
		END IF;
		IF node.wal_level <> 'logical' THEN
			RETURN QUERY VALUES (
				format('wal_level is %s on the node %s, and no tenant could '
					   'be moved while requests go on', node.wal_level,
					   node.name),
				'ALTER SYSTEM SET wal_level = logical, and restart it');
		END IF;
		RETURN QUERY
			SELECT format('on the node %s the schema "%s" belongs to %s, who '
						  'could put other tables in the place of the '
						  'service''s', node.name, s.key, s.value),
				   format('ALTER SCHEMA %I OWNER TO entityapi_owner, there',
						  s.key)
			FROM jsonb_each_text(node.schemas) s
			ORDER BY s.key;
	END LOOP;
END
$$;

-- Citus names functions, its own among them, without their schema, and sends
-- that to sessions of superusers on other nodes.  By default these look first
-- into a schema of their role's name, which whoever may create schemas can
-- make.
CREATE FUNCTION entityapi.pin_installer_path() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	role name;
BEGIN
	FOR role IN
		SELECT DISTINCT r.rolname
		FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner
		JOIN pg_database d ON d.datname = current_database()
		WHERE e.extname IN ('citus', 'entityapi') AND r.rolsuper
		  AND NOT EXISTS (SELECT
						  FROM pg_db_role_setting s, unnest(s.setconfig) c
						  WHERE s.setrole IN (0, r.oid)
							AND s.setdatabase IN (0, d.oid)
							AND starts_with(c, 'search_path=')
							AND strpos(c, '$user') = 0)
	LOOP
		EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = public',
					   role, current_database());
	END LOOP;
END
$$;

-- A node that has been given the extension by Citus has its tables as well.
-- Their rows come from Citus by and by, and so do their foreign keys and the
-- triggers of the audit log and of accounts.
CREATE FUNCTION entityapi.prepare_node() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	key record;
BEGIN
	PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
	PERFORM entityapi.guard_moves();
	PERFORM entityapi.pin_installer_path();
	IF EXISTS (SELECT FROM pg_dist_partition
			   WHERE logicalrelid = 'entityapi.account'::regclass) THEN
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM entityapi.account)
		OR EXISTS (SELECT FROM entityapi.revision)
		OR EXISTS (SELECT FROM entityapi.audit) THEN
		RAISE EXCEPTION 'this node has a service of its own'
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
	FOR key IN
		SELECT k.conrelid::regclass AS own, k.conname
		FROM pg_constraint k
		WHERE k.contype = 'f'
		  AND k.conrelid IN (SELECT entityapi.list_own_tables())
	LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.own,
					   key.conname);
	END LOOP;
	FOR key IN
		SELECT t.tgrelid::regclass AS own, t.tgname
		FROM pg_trigger t
		WHERE t.tgname IN ('append_only', 'copy_account')
		  AND t.tgrelid IN (SELECT entityapi.list_audit_tables()
							UNION ALL SELECT 'entityapi.account'::regclass)
	LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', key.tgname, key.own);
	END LOOP;
	DELETE FROM entityapi.common_password;
END
$$;

-- Foreign keys between the tables of the extension; Citus takes a table of
-- these without any.  Returns the statements that make them again.
CREATE FUNCTION entityapi.drop_own_references() RETURNS text[]
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	key record;
	made text[] := '{}';
BEGIN
	FOR key IN
		SELECT k.conrelid::regclass AS own, k.conname,
			   pg_get_constraintdef(k.oid) AS definition
		FROM pg_constraint k
		WHERE k.contype = 'f'
		  AND k.conrelid IN (SELECT entityapi.list_own_tables())
		ORDER BY k.conrelid::regclass::text COLLATE "C",
			k.conname COLLATE "C"
	LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.own,
					   key.conname);
		made := made || format('ALTER TABLE %s ADD CONSTRAINT %I %s', key.own,
							   key.conname, key.definition);
	END LOOP;
	RETURN made;
END
$$;

-- The tables of the extension to Citus.  Citus refuses to have two roles
-- change what lies together in one transaction, and those of entities are
-- their owner's.  So this is a transaction of its own, before that of a
-- change, and in between the service answers nothing.  And as tables without
-- a tenant, which are their owner's, lie with the declarations, who changes
-- the ones has to write the others: what he may write there is said in
-- 60_declarations.sql.
--
-- Citus runs statements on other nodes as who has asked for them, so it has to
-- log in as these roles.  They get no password: who gets in is said by
-- pg_hba.conf.
CREATE FUNCTION entityapi.distribute_own() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	SET lock_timeout = '5s'
	AS $$
DECLARE
	own regclass;
	key text;
	keys text[];
	copies text;
	failed text;
BEGIN
	IF EXISTS (SELECT FROM pg_dist_partition
			   WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
		RETURN;
	END IF;
	PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true),
			set_config('citus.enable_unsafe_triggers', 'on', true),
			entityapi.carry_lock_timeout();
	FOR own IN SELECT entityapi.list_own_tables()
			   UNION ALL SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', own);
	END LOOP;
	SELECT string_agg(format('%s:%s: %s', n.nodename, n.nodeport, r.result),
					  ', ') INTO failed
	FROM run_command_on_workers('SELECT entityapi.prepare_node()') r
	JOIN pg_dist_node n USING (nodename, nodeport)
	WHERE NOT r.success;
	IF failed IS NOT NULL THEN
		RAISE EXCEPTION 'a node is not fit for the service: %', failed
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;

	PERFORM entityapi.guard_moves();
	PERFORM entityapi.pin_installer_path();
	UPDATE entityapi.mapped_role
	SET node_oids = entityapi.role_on_nodes(role);

	-- no request makes a month any more
	PERFORM entityapi.extend_audit(now(), 2);
	ALTER ROLE entityapi_owner LOGIN;
	ALTER ROLE entityapi_reader LOGIN;

	-- Citus names nothing of pg_catalog by its schema.  Where a path of the
	-- database has others before that, they would get what it sends.
	ALTER ROLE entityapi_owner SET search_path = pg_catalog, pg_temp;
	ALTER ROLE entityapi_reader SET search_path = pg_catalog, pg_temp;

	-- rows that have no key go to a node that is added like all others
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		IF NOT EXISTS (SELECT FROM pg_constraint k
					   WHERE k.conrelid = own AND k.contype = 'p') THEN
			EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', own);
		END IF;
	END LOOP;

	-- Citus puts values into the text of statements.  What fails is told to
	-- the node that has sent it, and is in the log there, without them.  Of
	-- one that is killed the server logs what it did, as far as it knows.
	ALTER ROLE entityapi_owner SET track_activities = off;
	PERFORM entityapi.silence_role(r.rolname)
	FROM pg_roles r
	WHERE r.rolname IN ('entityapi_owner', 'entityapi_reader')
	   OR EXISTS (SELECT FROM entityapi.mapped_role m
				  WHERE m.role = r.rolname AND m.role_oid = r.oid);
	keys := entityapi.drop_own_references();
	PERFORM entityapi.guard_declarations(true);

	-- accounts go to nodes that do not know the declarations yet
	SELECT pg_get_triggerdef(t.oid) INTO STRICT copies
	FROM pg_trigger t
	WHERE t.tgrelid = 'entityapi.account'::regclass
	  AND t.tgname = 'copy_account';
	DROP TRIGGER copy_account ON entityapi.account;
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		PERFORM create_reference_table(own);
		PERFORM truncate_local_data_after_distributing_table(own);
	END LOOP;
	FOREACH key IN ARRAY keys LOOP
		EXECUTE key;
	END LOOP;
	EXECUTE copies;
	PERFORM entityapi.distribute_audit();
	GRANT INSERT, UPDATE, DELETE ON entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name TO entityapi_owner;
END
$$;

-- What others send in the name of a role stays out of the logs, as do its own
-- statements.
CREATE FUNCTION entityapi.silence_role(role text) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	EXECUTE format('ALTER ROLE %I SET log_min_messages = fatal', role);
	EXECUTE format('ALTER ROLE %I SET log_min_error_statement = panic', role);
END
$$;

-- The oids that a role has, by the groups of nodes
CREATE FUNCTION entityapi.role_on_nodes(role text) RETURNS jsonb
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	answers record;
BEGIN
	SELECT jsonb_object_agg(n.groupid, r.result) AS oids,
		   string_agg(n.nodename || ':' || n.nodeport, ', ')
				FILTER (WHERE NOT r.success) AS silent
	INTO answers
	FROM run_command_on_all_nodes(
			format('SELECT oid FROM pg_catalog.pg_roles'
				   ' WHERE rolname OPERATOR(pg_catalog.=) %L', role)) r
	JOIN pg_dist_node n USING (nodeid);
	IF answers.silent IS NOT NULL THEN
		RAISE EXCEPTION 'these nodes do not tell of the role %: %', role,
			answers.silent
			USING ERRCODE = 'connection_failure';
	END IF;
	RETURN answers.oids;
END
$$;

-- The one or the other by another session, as the caller has a transaction of
-- his own.
CREATE FUNCTION entityapi.move_own_ahead(distribute boolean) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	done record;
BEGIN
	SELECT r.success, r.result INTO done
	FROM run_command_on_coordinator(
			CASE WHEN distribute THEN 'SELECT entityapi.distribute_own()'
				ELSE 'SELECT entityapi.undistribute_own()' END) r;
	IF NOT done.success THEN
		RAISE EXCEPTION 'the tables of the extension stay where they are: %',
			done.result
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
END
$$;

-- Each record has a tenant then, and is found by it first.
CREATE FUNCTION entityapi.distribute_audit() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	part regclass;
BEGIN
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('DROP TRIGGER append_only ON %s', part);
	END LOOP;
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		EXECUTE format(
			'UPDATE %s SET tenant_id ='
			' ''00000000-0000-0000-0000-000000000000'''
			' WHERE tenant_id IS NULL', part);
		PERFORM entityapi.rekey_audit(part, '(tenant_id, at, id)',
									  '(at, id)');
	END LOOP;
	ALTER TABLE entityapi.audit ALTER COLUMN tenant_id SET NOT NULL;
	PERFORM create_distributed_table(
		'entityapi.audit', 'tenant_id',
		colocate_with => coalesce((
			SELECT p.logicalrelid::text
			FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
			WHERE p.partmethod = 'h'
			  AND c.relowner = 'entityapi_owner'::regrole
			LIMIT 1), 'none'));
	PERFORM truncate_local_data_after_distributing_table('entityapi.audit');
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		PERFORM entityapi.guard_audit(part);
	END LOOP;

	-- no rows: a key that Citus makes at the end of every move, for
	-- await_replication(), and by which the platform's node is asked
	CREATE TABLE entityapi.moved (
		tenant_id uuid PRIMARY KEY REFERENCES entityapi.moved
	);
	GRANT SELECT ON entityapi.moved TO entityapi_owner;
	PERFORM create_distributed_table('entityapi.moved', 'tenant_id',
									 colocate_with => 'entityapi.audit');
END
$$;

-- Another primary key of a partition, in the place of an index on the same
-- columns, and an index in the place of the key that it has.
CREATE FUNCTION entityapi.rekey_audit(part regclass, key text, other text)
	RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text;
BEGIN
	SELECT c.conname INTO STRICT name
	FROM pg_constraint c WHERE c.conrelid = part AND c.contype = 'p';
	EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', part, name);
	EXECUTE (
		SELECT string_agg('DROP INDEX ' || i.indexrelid::regclass, '; ')
		FROM pg_index i
		WHERE i.indrelid = part AND i.indpred IS NULL AND NOT i.indisunique
		  AND pg_get_indexdef(i.indexrelid) LIKE '% USING btree ' || key);
	EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I PRIMARY KEY %s', part,
				   name, key);
	EXECUTE format('CREATE INDEX ON %s %s', part, other);
END
$$;

-- The way back.  Dropped and made anew, as undistribute_table() does it, a
-- table would be no part of the extension any more; so its rows are put aside,
-- Citus gives the table up, and they are put back.
CREATE FUNCTION entityapi.undistribute_own() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET session_replication_role = 'replica'
	SET client_min_messages = 'warning'
	SET lock_timeout = '5s'
	AS $$
DECLARE
	part regclass;
	own regclass;
	key text;
	keys text[];
BEGIN
	IF NOT EXISTS (SELECT FROM pg_dist_partition
				   WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
		RETURN;
	END IF;
	PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true),
			set_config('citus.enable_unsafe_triggers', 'on', true),
			entityapi.carry_lock_timeout();
	FOR own IN SELECT entityapi.list_own_tables()
			   UNION ALL SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', own);
	END LOOP;
	REVOKE INSERT, UPDATE, DELETE ON entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name FROM entityapi_owner;
	keys := entityapi.drop_own_references();
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		PERFORM entityapi.take_back(own);
	END LOOP;
	PERFORM entityapi.guard_declarations(false);
	FOREACH key IN ARRAY keys LOOP
		EXECUTE key;
	END LOOP;

	PERFORM entityapi.unguard_moves();

	-- all nodes forget it: Citus has a trigger that says so
	PERFORM set_config('session_replication_role', 'origin', true);
	DROP TABLE entityapi.moved;
	PERFORM set_config('session_replication_role', 'replica', true);

	-- partitions before what they belong to
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('DROP TRIGGER append_only ON %s', part);
		EXECUTE format('DROP TRIGGER append_only_all ON %s', part);
	END LOOP;
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		PERFORM entityapi.take_back(part);
	END LOOP;
	PERFORM entityapi.take_back('entityapi.audit');
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		PERFORM entityapi.rekey_audit(part, '(at, id)', '(tenant_id, at, id)');
	END LOOP;
	ALTER TABLE entityapi.audit ALTER COLUMN tenant_id DROP NOT NULL;
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		EXECUTE format(
			'UPDATE %s SET tenant_id = NULL'
			' WHERE tenant_id = ''00000000-0000-0000-0000-000000000000''',
			part);
	END LOOP;
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		PERFORM entityapi.guard_audit(part);
	END LOOP;
END
$$;

CREATE FUNCTION entityapi.take_back(own regclass) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text := (SELECT c.relname FROM pg_class c WHERE c.oid = own);
	holds_rows bool := (SELECT c.relkind = 'r' FROM pg_class c
						WHERE c.oid = own);
	key name;
BEGIN
	IF holds_rows THEN
		EXECUTE format('CREATE TABLE entityapi.rows_put_aside AS'
					   ' SELECT * FROM %s', own);
	END IF;
	PERFORM master_remove_distributed_table_metadata_from_workers(
				own, 'entityapi', name),
			citus_drop_all_shards(own, 'entityapi', name, false),
			master_remove_partition_metadata(own, 'entityapi', name);
	FOR key IN SELECT t.tgname FROM pg_trigger t
			   WHERE t.tgrelid = own AND t.tgname ~ '^truncate_trigger_' LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', key, own);
	END LOOP;
	IF holds_rows THEN
		EXECUTE format('INSERT INTO %s SELECT * FROM'
					   ' entityapi.rows_put_aside', own);
		DROP TABLE entityapi.rows_put_aside;
	END IF;
END
$$;

-- Nothing of the service may be left that is on this node alone, or as it was
-- before: the tables of the extension, and those that are named.  Rows that
-- Citus does not see would be in the table's own file.
CREATE FUNCTION entityapi.check_distributed(others regclass[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	found text;
BEGIN
	SELECT string_agg(o.own::text, ', ' ORDER BY o.own::text COLLATE "C")
	INTO found
	FROM (SELECT entityapi.list_own_tables()
		  UNION ALL SELECT entityapi.list_audit_tables()
		  UNION ALL SELECT unnest(others)) o (own)
	WHERE pg_relation_size(o.own) > 0
	   OR NOT EXISTS (SELECT FROM pg_dist_partition p
					  WHERE p.logicalrelid = o.own
						AND (p.partmethod = 'n' AND p.repmodel = 't'
							 OR p.colocationid = (
								SELECT a.colocationid
								FROM pg_dist_partition a
								WHERE a.logicalrelid
									= 'entityapi.audit'::regclass)));
	IF found IS NOT NULL THEN
		RAISE EXCEPTION 'rows are left on this node alone: %', found
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Of tables that you have distributed yourself, '
					'truncate_local_data_after_distributing_table() removes '
					'them.';
	END IF;
END
$$;

-- on a node that Citus has given the extension
DO $$
DECLARE
	worker bool := false;
BEGIN
	IF pg_catalog.to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL
	THEN
		EXECUTE 'SELECT l.groupid OPERATOR(pg_catalog.<>) 0'
			' FROM pg_catalog.pg_dist_local_group l' INTO worker;
	END IF;
	IF worker THEN
		PERFORM entityapi.prepare_node();
	END IF;
END
$$;
-- What the nodes of a cluster ask of each other
--
-- A statement goes to the node whose rows it is about, or to all of them, and
-- on the way it can call a function there, in the transaction that the nodes
-- share.  None of these is immutable; but Citus sends no other ones along with
-- a change of rows, and with the anchor, which is of the rows, none of them is
-- called but where these are.

-- One row, on each node.
CREATE TABLE entityapi.everywhere (
	present boolean PRIMARY KEY CHECK (present)
);

INSERT INTO entityapi.everywhere VALUES (true);

COMMENT ON TABLE entityapi.everywhere IS
	'A row that each node of a cluster has, by which all are asked';

-- Have foreign keys of shards on this node checked later, or now.
CREATE FUNCTION entityapi.let_wait(anchor bigint, tenant uuid, tables text[],
								   keys text[], deferred boolean)
	RETURNS boolean
	LANGUAGE c IMMUTABLE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_let_wait';

-- Take a turn for the cluster, on the node that keeps what is the platform's.
CREATE FUNCTION entityapi.take_turn(anchor bigint, turn int, wait boolean)
	RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_turn';

-- Take a slot of a login, there too; returns how many others have.
CREATE FUNCTION entityapi.take_slots(anchor bigint, class int, name bigint,
									 n int)
	RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_slots';

-- Enter or leave the gate before them.
CREATE FUNCTION entityapi.pass_gate(anchor bigint, enter boolean) RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_pass_gate';

-- Wait a moment for the transactions of this node; an error if one goes on.
CREATE FUNCTION entityapi.let_end(anchor boolean) RETURNS boolean
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_let_end';
/*
 * The whole API, as entityapi_owner whoever calls: extension/engine/owner.h.
 */
CREATE FUNCTION entityapi.handle(method text, target text, headers jsonb,
								 body bytea, remote inet,
								 OUT status int, OUT headers jsonb,
								 OUT body text)
	RETURNS record
	LANGUAGE C VOLATILE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_handle';

/*
 * The same for the shim, as one message each way: extension/entry/message.h
 * has the form.
 */
CREATE FUNCTION entityapi.handle(message bytea) RETURNS bytea
	LANGUAGE C VOLATILE STRICT
	AS 'MODULE_PATHNAME', 'ea_sql_handle_message';

COMMENT ON FUNCTION entityapi.handle(bytea) IS
	'handle() for the shim: the same requests and answers, each as one '
	'message';

CREATE FUNCTION entityapi.housekeep(OUT deleted bigint, OUT more boolean)
	RETURNS record
	LANGUAGE C VOLATILE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_housekeep';

COMMENT ON FUNCTION entityapi.housekeep() IS
	'A step of what the service does when nobody asks, for the shim: deletes '
	'what is over; null if it failed, which the log tells of';

CREATE FUNCTION entityapi.version() RETURNS text
	LANGUAGE C IMMUTABLE PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_version';

/* Statements run for requests by this session since the last call. */
CREATE FUNCTION entityapi.statement_count() RETURNS int
	LANGUAGE C VOLATILE
	AS 'MODULE_PATHNAME', 'ea_sql_statement_count';

CREATE FUNCTION entityapi.explain(method text, target text, principal jsonb)
	RETURNS SETOF text
	LANGUAGE C VOLATILE STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_explain';

COMMENT ON FUNCTION entityapi.explain(text, text, jsonb) IS
	'The statements that a request of this principal runs, with their plans; '
	'nothing of it is kept';
-- All that was made above belongs to the installer, and is nobody else's.
-- entityapi_owner calls the functions, and reads and writes the tables, but
-- cannot change one of them: whatever a superuser calls, or fires by writing
-- to a table, is what was installed.
--
-- This runs at updates as well, when only what is new has to be seen to, and
-- all that versions before 1.2 gave to entityapi_owner.  What is granted while
-- a script runs counts as the extension's own, with all other rights on the
-- same thing, and dumps leave it out; so what an operator granted is taken
-- from that record again.
DO $$
DECLARE
	installer name;
	object record;
	theirs pg_catalog.oid[];
BEGIN
	SELECT CASE WHEN r.rolsuper THEN r.rolname ELSE CURRENT_USER END
	INTO STRICT installer
	FROM pg_catalog.pg_extension e
	JOIN pg_catalog.pg_roles r ON r.oid = e.extowner
	WHERE e.extname = 'entityapi';
	FOR object IN
		SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass AS class,
			   n.oid AS id, 'SCHEMA' AS kind,
			   n.nspname::text AS name, n.nspowner AS owner,
			   coalesce(n.nspacl,
						pg_catalog.acldefault('n', n.nspowner)) AS acl,
			   '{USAGE}'::text[] AS rights
		FROM pg_catalog.pg_namespace n
		WHERE n.nspname = 'entityapi'
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid,
			   CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
			   c.oid::pg_catalog.regclass::text, c.relowner,
			   coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)),
			   CASE WHEN c.relkind = 'v' OR c.relispartition THEN '{SELECT}'
					WHEN c.relname = 'audit' THEN '{SELECT,INSERT}'
					-- written by apply_manifest() alone, and believed
					WHEN c.relname IN ('entity', 'service', 'revision',
									 'past_name')
					THEN '{SELECT}'
					WHEN c.relname = 'moved' THEN '{SELECT}'
					WHEN c.relname = 'announced' THEN '{}'
					-- their one row stays
					WHEN c.relname IN ('everywhere', 'declaring')
					THEN '{SELECT,UPDATE}'
					ELSE '{SELECT,INSERT,UPDATE,DELETE}' END::text[]
		FROM pg_catalog.pg_class c
		WHERE c.relnamespace = 'entityapi'::pg_catalog.regnamespace
		  AND c.relkind IN ('r', 'p', 'S', 'v')
		UNION ALL
		SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 'FUNCTION',
			   p.oid::pg_catalog.regprocedure::text, p.proowner,
			   coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)),
			   CASE WHEN p.prorettype
							= 'pg_catalog.trigger'::pg_catalog.regtype
						 OR p.proname IN (
							'make_audit_partition', 'take_audit_turn',
							'note_purge', 'guard_audit', 'rekey_audit',
							'distribute_own', 'distribute_audit',
							'undistribute_own', 'take_back',
							'move_own_ahead',
							'prepare_node', 'pin_installer_path',
							'drop_own_references',
							'list_citus_faults', 'check_distributed',
							'list_own_tables', 'list_audit_tables',
							'audit_is_distributed', 'role_on_nodes',
							'await_replication', 'guard_moves',
							'unguard_moves', 'guard_is_member',
							'announce', 'announce_here', 'declaring_here',
							'silence_role', 'guard_declarations')
					THEN '{}'
					ELSE '{EXECUTE}' END::text[]
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
		  AND EXISTS (SELECT FROM pg_catalog.pg_depend m
					  JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
					  WHERE m.classid
							= 'pg_catalog.pg_proc'::pg_catalog.regclass
						AND m.objid = p.oid AND m.deptype = 'e'
						AND m.refclassid
							= 'pg_catalog.pg_extension'::pg_catalog.regclass
						AND e.extname = 'entityapi')
	LOOP
		SELECT pg_catalog.array_agg(a.grantee) INTO theirs
		FROM pg_catalog.aclexplode(object.acl) a
		WHERE a.grantee <> 0 AND a.grantee <> object.owner
		  AND a.grantee <> 'entityapi_owner'::pg_catalog.regrole
		  AND NOT EXISTS (SELECT FROM pg_catalog.pg_init_privs i,
						  pg_catalog.aclexplode(i.initprivs) o
						  WHERE i.classoid = object.class
							AND i.objoid = object.id AND i.objsubid = 0
							AND o.grantee = a.grantee);
		IF object.owner <> installer::pg_catalog.regrole THEN
			EXECUTE pg_catalog.format('ALTER %s %s OWNER TO %I', object.kind,
									  object.name, installer);
		END IF;
		IF object.owner <> installer::pg_catalog.regrole
			OR EXISTS (SELECT FROM pg_catalog.aclexplode(object.acl) a
					   WHERE a.grantee = 0) THEN
			EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM PUBLIC',
									  object.kind, object.name);
		END IF;
		-- who could hang something onto a table would have it run for others
		IF object.kind = 'TABLE' THEN
			EXECUTE coalesce((
				SELECT pg_catalog.string_agg(
						pg_catalog.format(
							'REVOKE %s ON %s FROM %s CASCADE',
							g.rights, object.name,
							CASE g.grantee WHEN 0 THEN 'PUBLIC'
								ELSE g.grantee::pg_catalog.regrole::text END),
						'; ')
				FROM (
					SELECT a.privilege_type, a.grantee
					FROM pg_catalog.aclexplode(object.acl) a
					WHERE a.privilege_type NOT IN ('SELECT', 'INSERT',
												   'UPDATE', 'DELETE')
					  AND a.grantee NOT IN (0, object.owner)
					UNION ALL
					SELECT pg_catalog.format('REFERENCES (%I)', t.attname),
						   a.grantee
					FROM pg_catalog.pg_attribute t,
						pg_catalog.aclexplode(t.attacl) a
					WHERE t.attrelid = object.id AND NOT t.attisdropped
					  AND a.privilege_type = 'REFERENCES'
					  AND a.grantee NOT IN (object.owner,
											installer::pg_catalog.regrole))
					g (rights, grantee)), 'SELECT');
		END IF;
		IF object.kind = 'SCHEMA' THEN
			EXECUTE coalesce((
				SELECT 'REVOKE CREATE ON SCHEMA entityapi FROM '
					|| pg_catalog.string_agg(
							DISTINCT a.grantee::pg_catalog.regrole::text, ', ')
					|| ' CASCADE'
				FROM pg_catalog.aclexplode(object.acl) a
				WHERE a.privilege_type = 'CREATE' AND a.grantee <> 0
				  AND a.grantee <> object.owner), 'SELECT');
		END IF;
		IF object.rights <> '{}'
			AND (object.owner = 'entityapi_owner'::pg_catalog.regrole
				 OR NOT object.rights <@ ARRAY(
					SELECT a.privilege_type
					FROM pg_catalog.aclexplode(object.acl) a
					WHERE a.grantee = 'entityapi_owner'::pg_catalog.regrole))
		THEN
			EXECUTE pg_catalog.format('GRANT %s ON %s %s TO entityapi_owner',
				pg_catalog.array_to_string(object.rights, ', '), object.kind,
				object.name);
		END IF;

		-- the months of the audit log are no members: all rights are in dumps
		DELETE FROM pg_catalog.pg_init_privs i
		WHERE i.classoid = object.class AND i.objoid = object.id
		  AND object.kind = 'TABLE'
		  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend m
						  WHERE m.classid = object.class
							AND m.objid = object.id AND m.deptype = 'e');
		UPDATE pg_catalog.pg_init_privs i
		SET initprivs = ARRAY(SELECT o FROM pg_catalog.unnest(i.initprivs) o
							  WHERE (SELECT a.grantee
									 FROM pg_catalog.aclexplode(ARRAY[o]) a
									 LIMIT 1) <> ALL (theirs))
		WHERE i.classoid = object.class AND i.objoid = object.id
		  AND i.objsubid = 0 AND theirs IS NOT NULL;
	END LOOP;
END
$$;

GRANT EXECUTE ON FUNCTION entityapi.handle(text, text, jsonb, bytea, inet),
	entityapi.handle(bytea), entityapi.housekeep()
	TO entityapi_client;

GRANT EXECUTE ON FUNCTION
	entityapi.current_tenant(),
	entityapi.caller_reads(text), entityapi.caller_bypasses(text),
	entityapi.readable_tenant(text), entityapi.caller_sees(text, uuid),
	entityapi.caller_boolean(text, text), entityapi.caller_number(text, text),
	entityapi.caller_text(text, text), entityapi.caller_uuid(text, text),
	entityapi.caller_date(text, text), entityapi.caller_datetime(text, text),
	entityapi.caller_texts(text, text), entityapi.caller_known(text, text)
	TO entityapi_reader;
