/*
 * All that was made above belongs to entityapi_owner and is nobody else's, but
 * for functions that take its rights themselves.
 * This runs at updates as well, when only what is new has to be seen to.
 */
DO $$
DECLARE
	object record;
BEGIN
	FOR object IN
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
			   c.oid::pg_catalog.regclass::text AS name, c.relowner AS owner,
			   'entityapi_owner'::pg_catalog.regrole AS wanted,
			   coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)) AS acl
		FROM pg_catalog.pg_class c
		WHERE c.relnamespace = 'entityapi'::pg_catalog.regnamespace
		  AND c.relkind IN ('r', 'p', 'S', 'v')
		UNION ALL
		SELECT 'FUNCTION', p.oid::pg_catalog.regprocedure::text, p.proowner,
			   CASE WHEN p.proname IN ('claim_apply', 'list_steps', 'run_step', 'note_step')
			   THEN (SELECT r.oid::pg_catalog.regrole FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
			   ELSE 'entityapi_owner'::pg_catalog.regrole END,
			   coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
	LOOP
		IF object.owner <> object.wanted THEN
			EXECUTE pg_catalog.format('ALTER %s %s OWNER TO %s', object.kind, object.name, object.wanted);
		END IF;
		IF object.owner <> object.wanted OR
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

GRANT EXECUTE ON FUNCTION
	entityapi.claim_apply(), entityapi.list_steps(),
	entityapi.run_step(integer, integer), entityapi.note_step(integer, text)
	TO entityapi_owner;
