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

-- all belongs to the owner, who cannot log in
SELECT rolname, rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'entityapi\_%' AND NOT rolcanlogin ORDER BY 1;
SELECT c.oid::regclass AS of_another FROM pg_class c
WHERE c.relnamespace = 'entityapi'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relowner <> 'entityapi_owner'::regrole;
SELECT p.oid::regprocedure AS of_another FROM pg_proc p
WHERE p.pronamespace = 'entityapi'::regnamespace AND p.proowner <> 'entityapi_owner'::regrole;

-- the shim's role may call handle() and touch nothing else
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
