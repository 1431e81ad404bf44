-- What holds for every object of the schema, whoever adds one.

-- a function that runs as its owner never goes by its caller's search path
SELECT p.oid::regprocedure AS unpinned
FROM pg_proc p
WHERE p.pronamespace = 'entityapi'::regnamespace AND p.prosecdef
  AND NOT 'search_path=pg_catalog, pg_temp' = ANY (coalesce(p.proconfig, '{}'));

-- nothing is everybody's
SELECT p.oid::regprocedure AS public_function
FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
WHERE p.pronamespace = 'entityapi'::regnamespace AND a.grantee = 0
ORDER BY 1;
SELECT c.oid::regclass AS public_relation, a.privilege_type
FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
WHERE c.relnamespace = 'entityapi'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.grantee = 0;

-- all belongs to the installer, a superuser, and nothing to the owner, who
-- cannot log in and makes nothing here
SELECT rolname, rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'entityapi\_%' AND NOT rolcanlogin ORDER BY 1;
CREATE TEMP VIEW installer AS SELECT r.oid FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner WHERE e.extname = 'entityapi' AND r.rolsuper;
SELECT count(*) FROM installer;
SELECT n.nspname AS of_another FROM pg_namespace n WHERE n.nspname = 'entityapi' AND n.nspowner <> (SELECT oid FROM installer);
SELECT c.oid::regclass AS of_another FROM pg_class c
WHERE c.relnamespace = 'entityapi'::regnamespace AND c.relowner <> (SELECT oid FROM installer);
SELECT p.oid::regprocedure AS of_another FROM pg_proc p
WHERE p.pronamespace = 'entityapi'::regnamespace AND p.proowner <> (SELECT oid FROM installer);
SELECT t.oid::regtype AS of_another FROM pg_type t
WHERE t.typnamespace = 'entityapi'::regnamespace AND t.typowner <> (SELECT oid FROM installer);
SELECT r.rolname AS makes_objects FROM pg_roles r
WHERE r.rolname LIKE 'entityapi\_%' AND has_schema_privilege(r.oid, 'entityapi', 'CREATE');

-- with the installer's rights runs what has to drop or make months of the log,
-- reads one column, and guards declarations on a cluster; all else takes those
-- of the owner
SELECT p.oid::regprocedure AS as_installer FROM pg_proc p
WHERE p.pronamespace = 'entityapi'::regnamespace AND p.prosecdef ORDER BY p.proname;

-- the owner calls all but triggers and what others call, and reads and writes
SELECT p.oid::regprocedure AS owner_may_not FROM pg_proc p
WHERE p.pronamespace = 'entityapi'::regnamespace AND NOT has_function_privilege('entityapi_owner', p.oid, 'EXECUTE') ORDER BY p.proname;
SELECT privilege_type AS owner_may,
	string_agg(DISTINCT relname, ' ') FILTER (WHERE relname LIKE 'audit%' OR relname = 'tenant') AS among_them
FROM (SELECT c.relname, string_agg(a.privilege_type, ',' ORDER BY a.privilege_type) AS privilege_type
	FROM pg_class c, aclexplode(c.relacl) a
	WHERE c.relnamespace = 'entityapi'::regnamespace AND c.relname !~ '^audit_\d{4}' AND a.grantee = 'entityapi_owner'::regrole GROUP BY c.oid) r
GROUP BY privilege_type ORDER BY 1;

-- the shim's role may call handle() and housekeep(), and touch nothing else
SELECT p.oid::regprocedure AS client_may FROM pg_proc p, aclexplode(p.proacl) a
WHERE p.pronamespace = 'entityapi'::regnamespace AND a.grantee = 'entityapi_client'::regrole
ORDER BY p.oid::regprocedure::text;
SELECT c.oid::regclass AS client_may, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'entityapi'::regnamespace AND a.grantee = 'entityapi_client'::regrole;

-- a reader calls what the policies on the tables call, and reads no table of identity
SELECT p.oid::regprocedure AS reader_may FROM pg_proc p, aclexplode(p.proacl) a
WHERE p.pronamespace = 'entityapi'::regnamespace AND a.grantee = 'entityapi_reader'::regrole ORDER BY p.proname;
SELECT c.oid::regclass AS reader_may, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'entityapi'::regnamespace AND a.grantee = 'entityapi_reader'::regrole;
