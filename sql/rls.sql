-- Row-level security: plain SQL as a reader sees what the API shows its user
SET client_min_messages = warning;
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "rls_test"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Clerk": null, "Boss": null}}},
	{"apiVersion": "entityapi/v1", "kind": "SecurityAttributes", "metadata": {"name": "attributes"}, "spec": {"attributes": {"region": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "SameRegion"}, "spec": {"expression": "#record.region == #user.securityAttributes[''region'']"}},
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "ShopInRegion"}, "spec": {"expression": "not (#record.shop.region != #user.securityAttributes[''region''])"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Country"}, "spec": {"tenantScoped": false, "permissions": {"Clerk": ["read"]}, "fields": {
		"code": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Shop"}, "spec": {"softDelete": true, "permissions": {"Clerk": ["read"]}, "policies": {"SameRegion": ["read"]}, "fields": {
		"region": {"type": "string"},
		"margin": {"type": "integer", "readRoles": ["Boss"]},
		"tags": {"type": "ref", "target": "Tag", "relation": "ManyToMany"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Sale"}, "spec": {"permissions": {"Clerk": ["read"]}, "policies": {"ShopInRegion": ["read"]}, "fields": {
		"shop": {"type": "ref", "target": "Shop"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Tag"}, "spec": {"permissions": {"*": ["read"]}, "fields": {
		"name": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Secret"}, "spec": {"permissions": {"Boss": ["read"]}, "fields": {
		"name": {"type": "string"}}}}
]');
SELECT tablename, policyname, roles, cmd FROM pg_policies WHERE schemaname = 'rls_test' ORDER BY 1;

INSERT INTO entityapi.tenant VALUES
	('00000000-0000-0000-0000-00000000000a', 'A', 'rls-a', 'ACTIVE', '{}', now()),
	('00000000-0000-0000-0000-00000000000b', 'B', 'rls-b', 'ACTIVE', '{}', now());
INSERT INTO entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile, security_attributes, password_change_required, is_super_admin, created_at)
SELECT format('00000000-0000-0000-0001-%s', lpad(n::text, 12, '0'))::uuid, tenant::uuid, 'USER', name, name, 'ACTIVE', roles::text[], '{}', attributes::jsonb, false, false, now()
FROM (VALUES
	(1, '00000000-0000-0000-0000-00000000000a', 'rls-north', '{Clerk}', '{"region": "north"}'),
	(2, '00000000-0000-0000-0000-00000000000a', 'rls-bare', '{Clerk}', '{}'),
	(3, '00000000-0000-0000-0000-00000000000b', 'rls-other', '{Clerk}', '{"region": "north"}'),
	(4, '00000000-0000-0000-0000-00000000000a', 'rls-none', '{}', '{"region": "north"}'),
	(5, '00000000-0000-0000-0000-00000000000a', 'rls-admin', '{}', '{}')) u (n, tenant, name, roles, attributes);
INSERT INTO entityapi.tenant_admin VALUES ('00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0001-000000000005');

CREATE FUNCTION pg_temp.id(n int) RETURNS uuid LANGUAGE sql AS $$ SELECT lpad(n::text, 32, '0')::uuid $$;
INSERT INTO rls_test.country (id, code, created_at, updated_at) VALUES (pg_temp.id(1), 'DE', now(), now());
INSERT INTO rls_test.shop (tenant_id, id, region, margin, created_at, updated_at, deleted_at)
SELECT t.id, pg_temp.id(s.n), s.region, 7, now(), now(), s.gone FROM entityapi.tenant t,
	(VALUES (1, 'north', NULL::timestamptz), (2, 'south', NULL), (3, NULL, NULL), (4, 'north', now())) s (n, region, gone)
WHERE t.slug IN ('rls-a', 'rls-b');
INSERT INTO rls_test.sale (tenant_id, id, shop_id, created_at, updated_at)
SELECT t.id, pg_temp.id(n), pg_temp.id(n), now(), now() FROM entityapi.tenant t, generate_series(1, 4) n WHERE t.slug IN ('rls-a', 'rls-b');
INSERT INTO rls_test.tag (tenant_id, id, name, created_at, updated_at)
SELECT t.id, pg_temp.id(1), t.slug, now(), now() FROM entityapi.tenant t WHERE t.slug IN ('rls-a', 'rls-b');
INSERT INTO rls_test.shop_tags SELECT t.id, pg_temp.id(n), pg_temp.id(1) FROM entityapi.tenant t, generate_series(1, 3) n WHERE t.slug IN ('rls-a', 'rls-b');
INSERT INTO rls_test.secret (tenant_id, id, name, created_at, updated_at)
SELECT t.id, pg_temp.id(1), 'x', now(), now() FROM entityapi.tenant t WHERE t.slug IN ('rls-a', 'rls-b');

CREATE ROLE regress_rls_reader LOGIN IN ROLE entityapi_reader;
CREATE ROLE regress_rls_middleware LOGIN IN ROLE entityapi_reader;
CREATE ROLE regress_rls_stranger LOGIN;
GRANT EXECUTE ON FUNCTION entityapi.set_principal(jsonb) TO regress_rls_middleware;

CREATE VIEW rls_test.seen WITH (security_invoker = true) AS
SELECT (SELECT count(*) FROM rls_test.country) AS countries,
	(SELECT string_agg(region, ' ' ORDER BY region) FROM rls_test.shop) AS shops,
	(SELECT count(*) FROM rls_test.sale) AS sales,
	(SELECT string_agg(name, ' ') FROM rls_test.tag) AS tags,
	(SELECT count(*) FROM rls_test.shop_tags) AS links,
	(SELECT count(*) FROM rls_test.secret) AS secrets;
GRANT SELECT ON rls_test.seen TO entityapi_reader;

-- Nobody without a principal sees a row
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;

SELECT entityapi.map_role('regress_rls_reader', 'RLS-North');
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
-- a column that only some roles may read is not granted
SELECT margin FROM rls_test.shop;
-- nothing can be written, mapped or set
INSERT INTO rls_test.tag DEFAULT VALUES;
SELECT entityapi.map_role('regress_rls_reader', 'rls-other');
SELECT entityapi.set_principal('{"userId": "x", "superAdmin": true}');
SET entityapi.principal = 'x';
SET entityapi.tenant = 'x';
SELECT entityapi.current_tenant(), entityapi.caller_text('username', NULL), entityapi.caller_reads('Secret');
SET row_security = off;
SELECT count(*) FROM rls_test.shop;
RESET row_security;
RESET SESSION AUTHORIZATION;

-- The state of the account counts from the next statement on
UPDATE entityapi.account SET status = 'DISABLED' WHERE username_key = 'rls-north';
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
UPDATE entityapi.account SET status = 'ACTIVE' WHERE username_key = 'rls-north';
UPDATE entityapi.tenant SET status = 'SUSPENDED' WHERE slug = 'rls-a';
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
UPDATE entityapi.tenant SET status = 'ACTIVE' WHERE slug = 'rls-a';

SELECT entityapi.map_role('regress_rls_reader', 'rls-bare');
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
SELECT entityapi.map_role('regress_rls_reader', 'rls-other');
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
SELECT entityapi.map_role('regress_rls_reader', 'rls-none');
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
SELECT entityapi.map_role('regress_rls_reader', 'rls-admin');
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;
SELECT entityapi.map_role('regress_rls_reader', 'rls-nobody');
SELECT entityapi.map_role('regress_rls_reader', NULL);
SET SESSION AUTHORIZATION regress_rls_reader;
SELECT * FROM rls_test.seen;
RESET SESSION AUTHORIZATION;

-- A trusted middleware says who asks
SET SESSION AUTHORIZATION regress_rls_middleware;
SELECT entityapi.set_principal('{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000b", "roles": ["Clerk", "Boss"], "securityAttributes": {"region": "south"}}');
SELECT * FROM rls_test.seen;
-- a property asked for as what it is not
SELECT entityapi.caller_text('superAdmin', NULL), entityapi.caller_number('roles', NULL), entityapi.caller_uuid('tenantAdmin', NULL),
	entityapi.caller_boolean('superAdmin', NULL), entityapi.caller_texts('roles', NULL), entityapi.caller_text('nothing', NULL);
-- a variable is another one each time
DO $$ DECLARE property text; BEGIN FOREACH property IN ARRAY '{userId,kind}'::text[] LOOP RAISE WARNING '%', entityapi.caller_text(property, NULL); END LOOP; END $$;
-- the same again: what was parsed of the principal outlives no statement
SELECT * FROM rls_test.seen;
SELECT entityapi.set_principal('{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000c", "roles": ["Clerk"]}');
SELECT * FROM rls_test.seen;
SELECT entityapi.set_principal('{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000b", "superAdmin": true}');
SELECT * FROM rls_test.seen;
SELECT entityapi.set_principal('{"userId": "u", "roles": ["Clerk"]}');
SELECT entityapi.set_principal('{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000b", "superAdmin": "true"}');
SELECT entityapi.set_principal('{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000b", "kind": "ROBOT"}');
SELECT * FROM rls_test.seen;
SELECT entityapi.set_principal(NULL);
RESET SESSION AUTHORIZATION;

-- Other roles have no right at all
SET SESSION AUTHORIZATION regress_rls_stranger;
SELECT count(*) FROM rls_test.shop;
SELECT entityapi.current_tenant();
RESET SESSION AUTHORIZATION;

DROP VIEW rls_test.seen;
REVOKE EXECUTE ON FUNCTION entityapi.set_principal(jsonb) FROM regress_rls_middleware;
DROP ROLE regress_rls_reader, regress_rls_middleware, regress_rls_stranger;
SELECT count(*) AS left_over FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity) || '{Roles/Clerk,SecurityAttributes/region}'::text[])
WHERE statement !~ '^(DROP TABLE|UPDATE|--)';
DROP SCHEMA rls_test;
DELETE FROM entityapi.tenant WHERE slug ~ '^rls-';
