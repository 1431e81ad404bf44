/*
 * All that was made above belongs to entityapi_owner and is nobody else's.
 * This runs at updates as well, when only what is new has to be seen to.
 */
DO $$
DECLARE
	object record;
BEGIN
	FOR object IN
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
			   c.oid::pg_catalog.regclass::text AS name, c.relowner AS owner,
			   coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)) AS acl
		FROM pg_catalog.pg_class c
		WHERE c.relnamespace = 'entityapi'::pg_catalog.regnamespace
		  AND c.relkind IN ('r', 'p', 'S', 'v')
		UNION ALL
		SELECT 'FUNCTION', p.oid::pg_catalog.regprocedure::text, p.proowner,
			   coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
	LOOP
		IF object.owner <> 'entityapi_owner'::pg_catalog.regrole THEN
			EXECUTE pg_catalog.format('ALTER %s %s OWNER TO entityapi_owner', object.kind, object.name);
		END IF;
		IF object.owner <> 'entityapi_owner'::pg_catalog.regrole OR
			EXISTS (SELECT 1 FROM pg_catalog.aclexplode(object.acl) WHERE grantee = 0) THEN
			EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM PUBLIC', object.kind, object.name);
		END IF;
	END LOOP;
END
$$;

GRANT EXECUTE ON FUNCTION entityapi.handle(text, text, jsonb, bytea, inet), entityapi.handle(bytea) TO entityapi_client;

GRANT EXECUTE ON FUNCTION
	entityapi.current_tenant(),
	entityapi.caller_reads(text), entityapi.caller_bypasses(text),
	entityapi.caller_boolean(text, text), entityapi.caller_number(text, text),
	entityapi.caller_text(text, text), entityapi.caller_uuid(text, text),
	entityapi.caller_date(text, text), entityapi.caller_datetime(text, text),
	entityapi.caller_texts(text, text), entityapi.caller_known(text, text)
	TO entityapi_reader;
