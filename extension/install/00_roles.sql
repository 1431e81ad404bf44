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
