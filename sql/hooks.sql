-- Hooks: what they are told, what they may answer, what becomes of a request
SET client_min_messages = warning;
CREATE SCHEMA hooks_code;
CREATE ROLE regress_hooks_owner;
GRANT USAGE ON SCHEMA hooks_code TO entityapi_owner;
CREATE TABLE hooks_code.log (n int GENERATED ALWAYS AS IDENTITY, who text, context jsonb);

CREATE FUNCTION hooks_code.note(context jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	INSERT INTO hooks_code.log (who, context) VALUES (current_user, context);
	RETURN NULL;
END $$;
CREATE FUNCTION hooks_code.check_name(context jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	name text := context->'after'->'attributes'->>'name';
BEGIN
	CASE name
		WHEN 'bad' THEN RETURN '{"reject": "the name is bad"}';
		WHEN 'raise' THEN RAISE EXCEPTION 'a secret of the server';
		WHEN 'divide' THEN PERFORM 1 / 0;
		WHEN 'slow' THEN PERFORM pg_sleep(600);
		WHEN 'loop' THEN LOOP PERFORM 1; END LOOP;
		WHEN 'odd' THEN RETURN '{"what": 1}';
		WHEN 'text' THEN RETURN '"x"';
		WHEN 'null' THEN RETURN 'null';
		ELSE RETURN NULL;
	END CASE;
	RETURN NULL;
END $$;
CREATE FUNCTION hooks_code.fill(context jsonb) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
	SELECT CASE WHEN context->'after'->'attributes'->>'name' = 'unfit' THEN '{"attributes": {"size": "x"}}'
		WHEN context->'after'->'attributes'->>'name' = 'unknown' THEN '{"attributes": {"nothing": 1}}'
		ELSE jsonb_build_object('attributes', jsonb_build_object('slug', upper(context->'after'->'attributes'->>'name'))) END
$$;
CREATE FUNCTION hooks_code.no_delete(context jsonb) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
	SELECT CASE WHEN context->'before'->'attributes'->>'name' = 'kept' THEN '{"reject": "it is kept"}'::jsonb END
$$;
CREATE FUNCTION hooks_code.after_name(context jsonb) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
	SELECT CASE WHEN context->'after'->'attributes'->>'name' = 'late' THEN '{"reject": "too late"}'::jsonb END
$$;
CREATE FUNCTION hooks_code.closed(context jsonb) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
	SELECT CASE WHEN context->'after'->'attributes'->>'name' = 'guarded' THEN '{"reject": "closed"}'::jsonb END
$$;
CREATE FUNCTION hooks_code.missing(context jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS 'SELECT NULL::jsonb';
ALTER FUNCTION hooks_code.note(jsonb) OWNER TO regress_hooks_owner;
GRANT INSERT ON hooks_code.log TO regress_hooks_owner;
GRANT USAGE ON SCHEMA hooks_code TO regress_hooks_owner;

-- Where tests may take longer, as on servers that look for faults of memory
\set slowness 1
\getenv slowness ENTITYAPI_TEST_SLOWNESS
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest(replace('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "hooks_test", "tenancy": "SINGLE"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Thing"}, "spec": {"permissions": {"*": ["create", "read", "update", "delete"]}, "fields": {
		"name": {"type": "string"},
		"size": {"type": "integer"},
		"slug": {"type": "string", "readOnly": true},
		"next": {"type": "ref", "target": "Thing"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Other"}, "spec": {"permissions": {"*": ["create", "read", "update", "delete"]}, "fields": {"name": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Closed"}, "spec": {"entity": "Thing", "phase": "guard", "on": ["create", "update"], "function": "hooks_code.closed"}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "CheckName"}, "spec": {"entity": "Thing", "phase": "validate", "on": ["create", "update"], "function": "hooks_code.check_name", "timeoutMs": LIMIT}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Fill"}, "spec": {"entity": "Thing", "phase": "mutate", "on": ["create", "update"], "function": "hooks_code.fill"}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "NoDelete"}, "spec": {"entity": "Thing", "phase": "validate", "on": ["delete"], "function": "hooks_code.no_delete"}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Note"}, "spec": {"entity": "*", "phase": "after", "on": ["create", "update", "delete"], "function": "hooks_code.note"}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Late"}, "spec": {"entity": "Thing", "phase": "after", "on": ["create", "update"], "function": "hooks_code.after_name"}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Missing"}, "spec": {"entity": "Other", "phase": "validate", "on": ["delete"], "function": "hooks_code.missing"}}
]', 'LIMIT', (200 * :slowness)::text)::jsonb);
SELECT entityapi.create_superadmin('hooks-admin', 'a long enough password') IS NOT NULL AS made;
SELECT (body::jsonb)->>'accessToken' AS token FROM entityapi.handle('POST', '/auth/login', '{"content-type": "application/json"}',
	'{"username": "hooks-admin", "password": "a long enough password"}', '127.0.0.1') \gset
CREATE TEMP TABLE token AS SELECT :'token' AS token;

CREATE FUNCTION pg_temp.ask(method text, target text, data jsonb DEFAULT NULL, atomic boolean DEFAULT false)
RETURNS TABLE (status int, said jsonb) LANGUAGE sql AS $$
	SELECT h.status, CASE WHEN h.status < 300 THEN h.body::jsonb->'data'->'attributes'
		ELSE (h.body::jsonb #> '{errors,0}') - '{id,title,status}'::text[] END
	FROM pg_temp.token t, entityapi.handle(method, target,
		jsonb_build_object('authorization', 'Bearer ' || t.token) ||
		CASE WHEN data IS NULL THEN '{}'
			 WHEN atomic THEN '{"content-type": "application/vnd.api+json;ext=\"https://jsonapi.org/ext/atomic\"", "accept": "application/vnd.api+json;ext=\"https://jsonapi.org/ext/atomic\""}'::jsonb
			 ELSE '{"content-type": "application/vnd.api+json"}' END,
		convert_to(data::text, 'UTF8'), '127.0.0.1') h
$$;
CREATE FUNCTION pg_temp.make(name text) RETURNS TABLE (status int, said jsonb) LANGUAGE sql AS $$
	SELECT * FROM pg_temp.ask('POST', '/api/v1/things', jsonb_build_object('data', jsonb_build_object('type', 'things', 'attributes', jsonb_build_object('name', name))))
$$;

-- A hook that sets an attribute
SELECT * FROM pg_temp.make('good');
SELECT who, context - '{requestId,tenant,principal,after}'::text[] AS context, context->'after'->'attributes' AS after,
	context->'principal'->>'username' AS username, context->'principal' ?| '{password,token,passwordHash}' AS secrets, context ? 'requestId' AS request
FROM hooks_code.log;

-- Rejections, exceptions, timeouts: named, told nothing else, rolled back
SELECT name, m.* FROM unnest('{guarded,bad,raise,divide,slow,loop,odd,text,unfit,unknown,late,null}'::text[]) WITH ORDINALITY u (name, n),
	pg_temp.make(name) m ORDER BY n;
SELECT name FROM hooks_test.thing ORDER BY name;

-- Update and delete
SELECT id AS good FROM hooks_test.thing WHERE name = 'good' \gset
CREATE FUNCTION pg_temp.change(id uuid, name text) RETURNS TABLE (status int, said jsonb) LANGUAGE sql AS $$
	SELECT * FROM pg_temp.ask('PATCH', '/api/v1/things/' || id, jsonb_build_object('data', jsonb_build_object('type', 'things', 'id', id, 'attributes', jsonb_build_object('name', name))))
$$;
SELECT name, c.* FROM unnest('{better,bad,late,kept}'::text[]) WITH ORDINALITY u (name, n),
	pg_temp.change(:'good', name) c ORDER BY n;
SELECT status FROM pg_temp.change('00000000-0000-0000-0000-000000000000', 'bad');
SELECT status, said->>'detail' AS detail FROM pg_temp.change('00000000-0000-0000-0000-000000000000', 'guarded');
SELECT * FROM pg_temp.ask('DELETE', '/api/v1/things/' || :'good');
SELECT context->>'operation' AS operation, context->'before'->'attributes' AS before, context->'after'->'attributes' AS after
FROM hooks_code.log ORDER BY n DESC LIMIT 2;

-- A relationship is a write of its resource
SELECT status FROM pg_temp.ask('PATCH', format('/api/v1/things/%s/relationships/next', :'good'),
	jsonb_build_object('data', jsonb_build_object('type', 'things', 'id', :'good')));
SELECT context->>'operation' AS operation, context->'before' #> '{relationships,next,data}' AS before,
	context->'after' #>> '{relationships,next,data,type}' AS after
FROM hooks_code.log ORDER BY n DESC LIMIT 1;

-- Atomic operations: every one of them, and nothing is left of the others
SELECT * FROM pg_temp.ask('POST', '/api/v1/operations', '{"atomic:operations": [
	{"op": "add", "data": {"type": "things", "attributes": {"name": "first"}}},
	{"op": "add", "data": {"type": "things", "attributes": {"name": "bad"}}}]}', true);
SELECT count(*) FROM hooks_test.thing WHERE name = 'first';
SELECT status FROM pg_temp.ask('POST', '/api/v1/operations', '{"atomic:operations": [
	{"op": "add", "data": {"type": "things", "attributes": {"name": "first"}}},
	{"op": "add", "data": {"type": "others", "attributes": {"name": "other"}}},
	{"op": "add", "data": {"type": "things", "attributes": {"name": "second"}}}]}', true);
SELECT name, slug FROM hooks_test.thing WHERE slug IS NOT NULL ORDER BY id;
SELECT context->>'entity' AS entity, context->'after'->'attributes'->>'name' AS name FROM hooks_code.log ORDER BY n DESC LIMIT 3;

-- A function that is not there any more
DROP FUNCTION hooks_code.missing(jsonb);
SELECT id AS other FROM hooks_test.other \gset
SELECT * FROM pg_temp.ask('DELETE', '/api/v1/others/' || :'other');

SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
DROP SCHEMA hooks_test;
DROP SCHEMA hooks_code CASCADE;
DROP ROLE regress_hooks_owner;
DELETE FROM entityapi.account WHERE username_key = 'hooks-admin';
DELETE FROM entityapi.tenant WHERE slug = 'default';
