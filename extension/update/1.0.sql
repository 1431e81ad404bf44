-- What 1.1 changed of 1.0 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- apply_manifest returns more columns, so it is made anew; who may call it
-- stands in a setting until then
SELECT pg_catalog.set_config('entityapi_update.apply_manifest', p.proacl::text, true)
FROM pg_catalog.pg_proc p
WHERE p.oid = 'entityapi.apply_manifest(jsonb, boolean, text[])'::pg_catalog.regprocedure;

DROP FUNCTION entityapi.apply_manifest(jsonb, boolean, text[]);

ALTER TABLE entityapi.tenant ADD COLUMN deleted_at timestamptz, ADD COLUMN deleted_by xid8;
ALTER TABLE entityapi.tenant DROP CONSTRAINT tenant_status_check;
ALTER TABLE entityapi.tenant
	ADD CONSTRAINT tenant_status_check CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED')),
	ADD CONSTRAINT tenant_check CHECK ((status = 'DELETED') = (deleted_at IS NOT NULL));

-- of all sessions, not only those that have not been ended
DROP INDEX entityapi.session_account_id;

-- After the parts

-- Rights that an operator gave are his, not the extension's: dumps have them
-- as long as pg_init_privs has not.
DO $$
DECLARE
	applying CONSTANT regprocedure := 'entityapi.apply_manifest(jsonb, boolean, text[])';
	own pg_catalog.aclitem[];
	given record;
BEGIN
	SELECT i.initprivs INTO own FROM pg_catalog.pg_init_privs i
	WHERE i.objoid = applying AND i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass;
	FOR given IN
		SELECT a.grantee::pg_catalog.regrole AS role, a.is_grantable
		FROM pg_catalog.aclexplode(pg_catalog.current_setting('entityapi_update.apply_manifest')::pg_catalog.aclitem[]) a
		WHERE a.grantee NOT IN (0, 'entityapi_owner'::pg_catalog.regrole)
	LOOP
		EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %s%s', applying, given.role,
			CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
	END LOOP;
	UPDATE pg_catalog.pg_init_privs i SET initprivs = own
	WHERE i.objoid = applying AND i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass;
END
$$;
