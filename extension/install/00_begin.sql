-- First of all, in every install and update script: nobody else's objects are
-- found by a name from here on.  CREATE EXTENSION has put the schema, and that
-- of pgcrypto, onto the path; with nothing but pg_catalog there, and pg_temp,
-- where neither functions nor operators are looked for, every name and every
-- operator below is PostgreSQL's, exact match or not.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

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
		RAISE EXCEPTION 'schema entityapi belongs to %, who could change what superusers run', found
			USING ERRCODE = 'insufficient_privilege', HINT = 'Drop the schema, or give it to a superuser.';
	END IF;

	-- all that a schema holds depends on it: members apart, and the months of
	-- the audit log, which are made at run time
	SELECT pg_catalog.string_agg(pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid), ', ' ORDER BY d.classid, d.objid)
	INTO found
	FROM pg_catalog.pg_depend d
	WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
	  AND d.refobjid = 'entityapi'::pg_catalog.regnamespace
	  AND d.deptype = 'n'
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_extension e
		WHERE e.extname IN ('entityapi', 'pgcrypto')
		  AND (d.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.objid = e.oid OR EXISTS (
			SELECT FROM pg_catalog.pg_depend m
			WHERE m.classid = d.classid AND m.objid = d.objid AND m.deptype = 'e'
			  AND m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND m.refobjid = e.oid)))
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		JOIN pg_catalog.pg_depend m ON m.classid = d.classid AND m.objid = i.inhparent AND m.deptype = 'e'
		JOIN pg_catalog.pg_extension e ON m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND m.refobjid = e.oid
		WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.inhrelid = d.objid
		  AND c.relispartition AND c.relname ~ '^audit_\d{4}_\d\d$' AND e.extname = 'entityapi');
	IF found IS NOT NULL THEN
		RAISE EXCEPTION 'schema entityapi holds what is no part of the extension: %', found
			USING ERRCODE = 'duplicate_object', HINT = 'Move it elsewhere or drop it.';
	END IF;
END
$$;
