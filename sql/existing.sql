-- Entities on tables that others made: what such a table may lack, what
-- applying does to it and what not

CREATE FUNCTION pg_temp.entity(name text, spec jsonb)
RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity',
							  'metadata', jsonb_build_object('name', name), 'spec', spec)
$$;

CREATE FUNCTION pg_temp.faults(documents jsonb)
RETURNS TABLE (pointer text, message text, hint text)
LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM entityapi.apply_manifest(documents, true);
	RETURN QUERY SELECT '', 'no fault', NULL::text;
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN QUERY SELECT f->>'pointer', f->>'message', f->>'hint'
				 FROM jsonb_array_elements(detail::jsonb) f;
END
$$;

CREATE ROLE existing_other;
CREATE SCHEMA existing_test;
CREATE SCHEMA existing_foreign AUTHORIZATION existing_other;

-- A table that was made with no thought of the service

CREATE TABLE existing_test.bad (
	id serial PRIMARY KEY,
	company uuid,
	code char(4) NOT NULL,
	name varchar(20),
	price numeric(10,4) NOT NULL,
	born timestamp,
	email text UNIQUE,
	full_name text GENERATED ALWAYS AS (email || '!') STORED,
	secret text NOT NULL,
	customer_id uuid
);
GRANT TRIGGER ON existing_test.bad TO existing_other;
GRANT SELECT ON existing_test.bad TO PUBLIC;
ALTER TABLE existing_test.bad FORCE ROW LEVEL SECURITY;
CREATE FUNCTION existing_test.trick() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
ALTER FUNCTION existing_test.trick() OWNER TO existing_other;
CREATE TRIGGER trick BEFORE INSERT ON existing_test.bad FOR EACH ROW EXECUTE FUNCTION existing_test.trick();

SELECT * FROM pg_temp.faults(jsonb_build_array(
	pg_temp.entity('Customer', '{"fields": {"name": {"type": "string"}}}'),
	pg_temp.entity('Bad', '{"table": "existing_test.bad", "columns": {"tenantId": "company"},
		"optimisticLocking": true, "softDelete": true, "fields": {
		"code": {"type": "string", "maxLength": 4},
		"name": {"type": "string", "required": true},
		"price": {"type": "decimal", "precision": 12, "scale": 2},
		"born": {"type": "datetime"},
		"email": {"type": "string", "unique": true},
		"fullName": {"type": "text"},
		"missing": {"type": "integer", "index": true},
		"customer": {"type": "ref", "target": "Customer"}}}')));

-- Things that are no table, or none to serve

CREATE VIEW existing_test.view AS SELECT 1 AS id;
CREATE TABLE existing_test.parts (id uuid) PARTITION BY HASH (id);
CREATE TABLE existing_test.part PARTITION OF existing_test.parts FOR VALUES WITH (modulus 1, remainder 0);
CREATE UNLOGGED TABLE existing_test.loose (id uuid);
CREATE TABLE existing_foreign.taken (id uuid PRIMARY KEY);

SELECT t.name, f.message, f.hint
FROM unnest(ARRAY['existing_test.view', 'existing_test.parts', 'existing_test.part', 'existing_test.loose',
	'existing_test.none', 'no_schema.none', 'existing_foreign.taken', 'entityapi.account', 'pg_catalog.pg_authid', 'information_schema.tables',
	'nothing', 'a.b.c', '.x', 'x.', '"open.x', '"a"b.c', 'existing_test."View"',
	repeat('x', 64) || '.y']) WITH ORDINALITY t (name, n),
	LATERAL pg_temp.faults(jsonb_build_array(pg_temp.entity('Thing',
		jsonb_build_object('tenantScoped', false, 'table', t.name, 'fields', '{}'::jsonb)))) f
ORDER BY t.n;

-- What the documents may say wrong

SELECT * FROM pg_temp.faults(jsonb_build_array(
	pg_temp.entity('Loose', '{"columns": {"id": "x"}, "fields": {}}'),
	pg_temp.entity('One', '{"table": "existing_test.one", "columns": {"nme": "x", "deletedAt": "gone", "others": "y", "name": 5, "id": "", "title": "same"},
		"fields": {"name": {"type": "string"}, "title": {"type": "string"}, "other": {"type": "string"}, "version": {"type": "integer"}, "tenant": {"type": "string"},
		"others": {"type": "ref", "target": "One", "relation": "ManyToMany"}}}'),
	pg_temp.entity('Two', '{"table": "existing_test.one", "columns": {"name": "same", "title": "same", "tenantId": "id"}, "fields": {"name": {"type": "string"}, "title": {"type": "string"}}}')));

-- A table with all that is asked for: odd names, a column of its own, and
-- rows that were there before

SET ROLE entityapi_owner;
CREATE SCHEMA "Existing ""Test""";
CREATE TABLE "Existing ""Test"""."the.Select" (
	"Company Id" uuid NOT NULL,
	"KEY" uuid NOT NULL,
	"na""me" varchar(200) NOT NULL,
	serial int NOT NULL GENERATED ALWAYS AS IDENTITY,
	"upper" text GENERATED ALWAYS AS (upper("na""me")) STORED,
	"from" uuid,
	secret text NOT NULL DEFAULT 'hidden',
	written timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY ("Company Id", "KEY"),
	UNIQUE ("Company Id", "na""me"),
	FOREIGN KEY ("Company Id", "from") REFERENCES "Existing ""Test"""."the.Select" ("Company Id", "KEY") DEFERRABLE,
	CHECK (length("na""me") <> 3)
);
RESET ROLE;
GRANT USAGE ON SCHEMA "Existing ""Test""" TO entityapi_reader;
CREATE ROLE existing_app;
GRANT USAGE ON SCHEMA "Existing ""Test""" TO existing_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON "Existing ""Test"""."the.Select" TO existing_app;

CREATE TEMP TABLE mapped AS SELECT pg_temp.entity('Thing', '{"table": "\"Existing \"\"Test\"\"\".\"the.Select\"",
	"columns": {"id": "KEY", "tenantId": "Company Id", "name": "na\"me", "parent": "from", "shout": "upper", "updatedAt": "written"},
	"fields": {"name": {"type": "string", "maxLength": 200, "required": true, "unique": true},
		"serial": {"type": "integer", "readOnly": true, "required": true},
		"shout": {"type": "text", "readOnly": true},
		"parent": {"type": "ref", "target": "Thing"},
		"friends": {"type": "ref", "target": "Thing", "relation": "ManyToMany"}},
	"permissions": {"*": ["create", "read", "update", "delete"]}}') AS document;

SELECT statement FROM mapped, entityapi.apply_manifest(jsonb_build_array(document));
SELECT count(*) AS again FROM mapped, entityapi.apply_manifest(jsonb_build_array(document));
SELECT count(*) AS exported FROM entityapi.apply_manifest(entityapi.export_manifest());

CREATE VIEW pg_temp.state AS
-- Without MAINTAIN, which all rights of an owner have in them since 17
SELECT c.relrowsecurity, replace(c.relacl::text, 'arwdDxtm/', 'arwdDxt/') AS relacl,
	(SELECT string_agg(polname || ' ' || polcmd::text || CASE WHEN polpermissive THEN '' ELSE ' restrictive' END, ', ' ORDER BY polname)
	 FROM pg_policy WHERE polrelid = c.oid) AS policies,
	(SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
	 WHERE attrelid = c.oid AND attacl IS NOT NULL) AS granted
FROM pg_class c WHERE c.relname = 'the.Select';
SELECT * FROM pg_temp.state;

-- Others work on as before

SET ROLE existing_app;
INSERT INTO "Existing ""Test"""."the.Select" ("Company Id", "KEY", "na""me")
VALUES ('01980000-0000-7000-8000-000000000001', '01980000-0000-7000-8000-000000000002', 'theirs');
UPDATE "Existing ""Test"""."the.Select" SET secret = 'new' RETURNING "na""me";
RESET ROLE;

-- Readers see nothing without a caller, and never what no field has

SET ROLE entityapi_reader;
SELECT count(*) FROM (SELECT "KEY" FROM "Existing ""Test"""."the.Select") s;
SELECT secret FROM "Existing ""Test"""."the.Select";
RESET ROLE;

-- Another entity on the same table, then none: the table stays as it is

SELECT statement FROM mapped, entityapi.apply_manifest(jsonb_build_array(
	jsonb_set(jsonb_set(document #- '{spec,fields,friends}', '{metadata,name}', '"Item"'), '{spec,fields,parent,target}', '"Item"')), false, '{Thing.friends}');
SELECT * FROM pg_temp.state;
SELECT statement FROM mapped, entityapi.apply_manifest('[]', false, '{}');
SELECT * FROM pg_temp.state;
SELECT count(*), min(secret) FROM "Existing ""Test"""."the.Select";

-- Row-level security that was there stays in force and stays behind

SET ROLE entityapi_owner;
ALTER TABLE "Existing ""Test"""."the.Select" ENABLE ROW LEVEL SECURITY;
CREATE POLICY theirs ON "Existing ""Test"""."the.Select" USING (secret <> 'new');
RESET ROLE;
SELECT count(*) > 0 AS applied FROM mapped, entityapi.apply_manifest(jsonb_build_array(document));
SELECT * FROM pg_temp.state;
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[]', false, '{Thing.friends}');
SELECT * FROM pg_temp.state;

-- A made table is no existing one; an existing one may be followed by a made
-- one; a table that others refer to is not dropped

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest(jsonb_build_array(pg_temp.entity('Thing', '{"fields": {"name": {"type": "string"}}}')));
SELECT * FROM pg_temp.faults(jsonb_build_array(pg_temp.entity('Thing', '{"table": "app.thing", "fields": {"name": {"type": "string"}}}')));
CREATE TABLE existing_test.refers (tenant uuid, thing uuid, FOREIGN KEY (tenant, thing) REFERENCES app.thing (tenant_id, id));
SELECT * FROM pg_temp.faults('[]');
SELECT f.* FROM mapped, pg_temp.faults(jsonb_build_array(document)) f;
DROP TABLE existing_test.refers;
SELECT statement FROM mapped, entityapi.apply_manifest(jsonb_build_array(document), false, '{Thing}');
SELECT statement FROM entityapi.apply_manifest(jsonb_build_array(pg_temp.entity('Thing', '{"fields": {"name": {"type": "string"}}}')), false, '{Thing.friends}');
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[]', false, '{Thing}');

\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA existing_test, existing_foreign, "Existing ""Test""" CASCADE;
DROP SCHEMA app;
DROP ROLE existing_app, existing_other;
