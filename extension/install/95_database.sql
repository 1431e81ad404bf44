-- What lets anybody who can connect stand in the way, or bring objects of his
-- own into a session, is not everybody's in this database
DO $$
DECLARE
	function pg_catalog.regprocedure;
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_database d,
				pg_catalog.aclexplode(
					coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
			WHERE d.datname = pg_catalog.current_database() AND a.grantee = 0
			  AND a.privilege_type = 'TEMPORARY') THEN
		EXECUTE pg_catalog.format('REVOKE TEMPORARY ON DATABASE %I'
								  ' FROM PUBLIC',
								  pg_catalog.current_database());
	END IF;

	-- Dumps are to have this, and so is pg_upgrade, for which it must not
	-- count as the extension's own.
	FOR function IN
		SELECT p.oid FROM pg_catalog.pg_proc p,
			pg_catalog.aclexplode(
				coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
		WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
		  AND p.proname ~ '^pg_(try_)?advisory_(xact_)?lock(_shared)?$'
		  AND a.grantee = 0
	LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC',
								  function);
		DELETE FROM pg_catalog.pg_init_privs i
		WHERE i.objoid = function
		  AND i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass;
	END LOOP;
END
$$;
