/* Roles belong to the cluster: other databases may have made them already. */
DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['entityapi_owner', 'entityapi_client', 'entityapi_reader']
	LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', role);
		END IF;
	END LOOP;
	EXECUTE pg_catalog.format('GRANT CREATE ON DATABASE %I TO entityapi_owner',
							  pg_catalog.current_database());
END
$$;

ALTER SCHEMA entityapi OWNER TO entityapi_owner;
REVOKE ALL ON SCHEMA entityapi FROM PUBLIC;
GRANT USAGE ON SCHEMA entityapi TO entityapi_client, entityapi_reader;
