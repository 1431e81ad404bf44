-- Changes of 1.3 that cannot be derived from the parts in extension/install.

ALTER TABLE entityapi.refresh_token
	ADD COLUMN used_from bytea,
	ADD COLUMN successor_id text COLLATE "C";

-- It has one more column.
DROP FUNCTION IF EXISTS entityapi.list_differences();

-- It returns json; who may call it stands in a setting until then.
SELECT pg_catalog.set_config('entityapi_update.export_manifest',
							 coalesce(p.proacl, '{}')::text, true)
FROM pg_catalog.pg_proc p
WHERE p.oid = 'entityapi.export_manifest()'::pg_catalog.regprocedure;

DROP FUNCTION entityapi.export_manifest();

-- Documents keep their order from now on.
ALTER TABLE entityapi.revision
	ALTER COLUMN documents TYPE json USING documents::text::json;

-- Since now at the latest
ALTER TABLE entityapi.entity
	ADD COLUMN applied_at timestamptz;

UPDATE entityapi.entity SET applied_at = pg_catalog.clock_timestamp();

-- Hashes of before are of what was typed.
ALTER TABLE entityapi.account
	ADD COLUMN password_nfc boolean NOT NULL DEFAULT false;

-- Tenants that are rows of an application
ALTER TABLE entityapi.tenant
	ADD COLUMN row_there boolean;

-- After the parts

-- Until now the locale of the database said what a name is without case.  The
-- key that a name gets may be another's of before: all that change go first,
-- to what no name can be.
DO $$
DECLARE
	twins text;
BEGIN
	SELECT pg_catalog.string_agg(t.names, E'\n' ORDER BY t.names COLLATE "C")
	INTO twins
	FROM (SELECT pg_catalog.string_agg(
				pg_catalog.format('"%s" (%s)', username, id), ' and '
				ORDER BY username COLLATE "C", id) AS names
		  FROM entityapi.account
		  WHERE kind = 'USER'
		  GROUP BY entityapi.fold_case(username)
		  HAVING pg_catalog.count(*) > 1) t;
	IF twins IS NOT NULL THEN
		RAISE EXCEPTION 'usernames that were two become one without case'
			USING ERRCODE = 'unique_violation', DETAIL = twins,
				  HINT = 'Give one of each another name, then update: '
						 'CREATE FUNCTION pg_temp.rename_account(id uuid, '
						 'name text) RETURNS void LANGUAGE c STRICT AS '
						 '''MODULE_PATHNAME'', ''ea_sql_rename_account''; '
						 'SELECT pg_temp.rename_account(id, name);';
	END IF;
	UPDATE entityapi.account SET username_key = E'\x01' || id::text
	WHERE kind = 'USER' AND username_key <> entityapi.fold_case(username);
	UPDATE entityapi.account SET username_key = entityapi.fold_case(username)
	WHERE username_key ~~ E'\x01%';

	-- a longer one is nobody's password
	INSERT INTO entityapi.common_password (password)
	SELECT DISTINCT entityapi.fold_case(password)
	FROM entityapi.common_password
	WHERE NOT built_in AND pg_catalog.octet_length(password) <= 512
	ON CONFLICT DO NOTHING;
	DELETE FROM entityapi.common_password
	WHERE NOT built_in AND pg_catalog.octet_length(password) <= 512
	  AND password <> entityapi.fold_case(password);
END
$$;

-- Whoever was given a function may call its other forms, too, and the new
-- export_manifest(): the shim calls those that take json.  Rights that an
-- operator gave are his, not the extension's, so dumps have to have them.
DO $$
DECLARE
	form record;
	own pg_catalog.aclitem[];
	given record;
BEGIN
	FOR form IN
		SELECT p.oid AS id, p.oid::pg_catalog.regprocedure AS name,
			   CASE WHEN p.proname = 'export_manifest'
				THEN pg_catalog.current_setting(
					'entityapi_update.export_manifest')::pg_catalog.aclitem[]
				ELSE old.proacl END AS acl
		FROM pg_catalog.pg_proc p
		LEFT JOIN pg_catalog.pg_proc old
			ON old.pronamespace = p.pronamespace AND old.proname = p.proname
			AND old.proargtypes[0] = 'pg_catalog.jsonb'::pg_catalog.regtype
			AND old.oid <> p.oid
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
		  AND p.proname IN ('export_manifest', 'apply_manifest',
							'repair_and_apply', 'compare_rights')
		  AND (p.proname = 'export_manifest' OR old.oid IS NOT NULL)
	LOOP
		SELECT i.initprivs INTO own FROM pg_catalog.pg_init_privs i
		WHERE i.objoid = form.id
		  AND i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass;
		FOR given IN
			SELECT a.grantee::pg_catalog.regrole AS role, a.is_grantable
			FROM pg_catalog.aclexplode(form.acl) a
			JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
			JOIN pg_catalog.pg_proc p ON p.oid = form.id
			WHERE a.grantee NOT IN (
					p.proowner, 'entityapi_owner'::pg_catalog.regrole)
		LOOP
			EXECUTE pg_catalog.format(
				'GRANT EXECUTE ON FUNCTION %s TO %s%s', form.name, given.role,
				CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION'
					ELSE '' END);
		END LOOP;
		UPDATE pg_catalog.pg_init_privs i SET initprivs = own
		WHERE i.objoid = form.id
		  AND i.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass;
	END LOOP;
END
$$;
