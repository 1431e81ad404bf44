-- The audit log: what is recorded, that it stays, and where it lies

\pset format unaligned
\pset tuples_only on
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
SET entityapi.bcrypt_cost = 10;
SET entityapi.clock = '2031-03-15T12:00:00Z';

CREATE TEMP TABLE token (name text PRIMARY KEY, access text, refresh text);
CREATE TEMP TABLE answer (status int, body jsonb);
CREATE TEMP TABLE made (name text PRIMARY KEY, id text);

-- Send as somebody, to a path in which :name stands for an id made before
CREATE FUNCTION pg_temp.send(who text, method text, target text, body text DEFAULT NULL,
							 headers jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	m record;
	type text := CASE WHEN target LIKE '%/operations'
		THEN 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"'
		WHEN target LIKE '/api/%' THEN 'application/vnd.api+json' ELSE 'application/json' END;
BEGIN
	FOR m IN SELECT * FROM made ORDER BY name DESC LOOP
		target := replace(target, ':' || m.name, m.id);
		body := replace(body, ':' || m.name, m.id);
	END LOOP;
	SELECT * INTO a FROM entityapi.handle(method, target,
		jsonb_build_object('content-type', type, 'accept', type, 'x-request-id', 'request') || headers ||
		coalesce((SELECT jsonb_build_object('authorization', 'Bearer ' || access) FROM token WHERE name = who), '{}'),
		convert_to(body, 'UTF8'), '192.0.2.7');
	DELETE FROM answer;
	INSERT INTO answer VALUES (a.status, a.body::jsonb);
	RETURN a.status;
END
$$;

CREATE FUNCTION pg_temp.keep(who text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO token SELECT who, body->>'accessToken', body->>'refreshToken' FROM answer
	ON CONFLICT (name) DO UPDATE SET access = excluded.access, refresh = excluded.refresh
$$;

-- Make a resource and remember its id under a name
CREATE FUNCTION pg_temp.make(who text, named text, target text, body text, headers jsonb DEFAULT '{}')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	status text := pg_temp.send(who, 'POST', target, body, headers);
BEGIN
	INSERT INTO made SELECT named, coalesce(a.body->'data'->>'id', a.body->>'id') FROM answer a;
	RETURN status;
END
$$;

-- Ids by their names
CREATE FUNCTION pg_temp.named(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	m record;
BEGIN
	FOR m IN SELECT * FROM made LOOP
		t := replace(t, m.id, '<' || m.name || '>');
	END LOOP;
	RETURN t;
END
$$;

-- The records written since the last look, oldest first, as they are written
-- here: where they lie nobody knows the names
CREATE TEMP TABLE seen (id uuid);
CREATE FUNCTION pg_temp.news() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM entityapi.audit WHERE id NOT IN (SELECT id FROM seen) ORDER BY at, id LOOP
		RETURN NEXT pg_temp.named(concat_ws(' ', r.action, r.outcome, coalesce(r.target_type, '-'),
			coalesce(r.target_id, '-'), 'by ' || coalesce(nullif(r.actor_username, session_user), CASE WHEN r.actor_username IS NULL THEN '-' ELSE 'the operator' END), '(' || r.actor_kind || ')',
			CASE WHEN r.actor_id IS NULL THEN 'unproven' END, 'in ' || coalesce(r.tenant_id::text, '-'), r.detail, r.changes));
	END LOOP;
	DELETE FROM seen;
	INSERT INTO seen SELECT id FROM entityapi.audit;
END
$$;

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "audit_test"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Editor": {"assignableBy": "superAdmin"}, "Reader": {}}}},
	{"apiVersion": "entityapi/v1", "kind": "OneOf", "metadata": {"name": "Place"}, "spec": {"members": ["Room", "Garden"]}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Room"}, "spec": {"fields": {
		"number": {"type": "integer", "unique": true}},
		"permissions": {"Editor": ["create", "read", "update", "delete"]}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Garden"}, "spec": {"fields": {
		"name": {"type": "string"}},
		"permissions": {"Editor": ["create", "read", "update", "delete"]}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Party"}, "spec": {"plural": "parties", "optimisticLocking": true, "fields": {
		"title": {"type": "string", "required": true},
		"price": {"type": "decimal", "precision": 10, "scale": 2},
		"paid": {"type": "boolean", "default": false},
		"notes": {"type": "json"},
		"place": {"type": "oneof", "target": "Place", "onDelete": "setNull"},
		"guests": {"type": "ref", "target": "Guest", "relation": "OneToMany", "mappedBy": "party"},
		"tags": {"type": "ref", "target": "Tag", "relation": "ManyToMany"}},
		"permissions": {"Editor": ["create", "read", "update", "delete"], "Reader": ["read"]}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Guest"}, "spec": {"fields": {
		"name": {"type": "string"},
		"party": {"type": "ref", "target": "Party", "onDelete": "cascade"}},
		"permissions": {"Editor": ["create", "read", "update", "delete"]}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Tag"}, "spec": {"tenantScoped": false, "fields": {
		"word": {"type": "string"}},
		"permissions": {"Editor": ["create", "read", "update", "delete"]}}}
]');

\echo === Identity and management
INSERT INTO made SELECT 'root', entityapi.create_superadmin('root', 'first pass phrase');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "root", "password": "canary-one"}');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "canary-two", "password": "canary-three"}');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "root"}');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "root", "password": "first pass phrase"}');
SELECT pg_temp.keep('root');
SELECT pg_temp.news();
SELECT pg_temp.make('root', 'acme', '/manage/tenants', '{"name": "Acme", "slug": "acme"}');
SELECT pg_temp.make('root', 'beta', '/manage/tenants', '{"name": "Beta", "slug": "beta",
	"admin": {"username": "bob", "temporaryPassword": "canary four for bob"}}');
INSERT INTO made SELECT 'bob', body->'admin'->>'id' FROM answer;
SELECT pg_temp.send('root', 'POST', '/manage/tenants', '{"name": "Beta", "slug": "beta"}');
SELECT pg_temp.make('root', 'eve', '/manage/tenants/:acme/users', '{"username": "eve", "temporaryPassword": "canary five for eve"}');
SELECT pg_temp.send('root', 'PUT', '/manage/tenants/:acme/users/:eve/roles', '{"roles": ["Editor"]}');
SELECT pg_temp.make('root', 'rita', '/manage/tenants/:acme/users',
	'{"username": "rita", "roles": ["Reader"], "temporaryPassword": "canary six for rita"}');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "canary five for eve"}');
SELECT pg_temp.keep('eve');
SELECT pg_temp.send('eve', 'GET', '/api/v1/parties');
SELECT pg_temp.send('eve', 'POST', '/auth/change-password', '{"currentPassword": "canary five for eve", "newPassword": "canary seven for eve"}');
SELECT pg_temp.keep('eve');
SELECT pg_temp.send('eve', 'PATCH', '/auth/me', '{"profile": {"colour": "green"}}');
SELECT pg_temp.send(NULL, 'POST', '/auth/refresh', json_build_object('refreshToken', refresh)::text) FROM token WHERE name = 'eve';
INSERT INTO token SELECT 'old', access, refresh FROM token WHERE name = 'eve';
SELECT pg_temp.keep('eve');
SELECT pg_temp.send(NULL, 'POST', '/auth/refresh', json_build_object('refreshToken', refresh)::text) FROM token WHERE name = 'old';
SELECT pg_temp.send(NULL, 'POST', '/auth/refresh', json_build_object('refreshToken', refresh)::text) FROM token WHERE name = 'eve';
SELECT pg_temp.send(NULL, 'POST', '/auth/refresh', json_build_object('refreshToken', refresh)::text) FROM token WHERE name = 'old';
SELECT pg_temp.send('eve', 'GET', '/auth/me');
SELECT pg_temp.send('eve', 'PATCH', '/auth/me', '{"profile": {}}');
SELECT pg_temp.send(NULL, 'GET', '/auth/me');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "canary seven for eve"}');
SELECT pg_temp.keep('eve');
SELECT pg_temp.send('eve', 'GET', '/manage/audit');
SELECT pg_temp.send('eve', 'PUT', '/manage/tenants/:beta/users/:bob/roles', '{"roles": []}');
SELECT pg_temp.send(NULL, 'POST', '/auth/logout', '{"refreshToken": "nobody has this"}');
SELECT pg_temp.news();
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "bob", "password": "canary four for bob"}');
SELECT pg_temp.keep('bob');
SELECT pg_temp.send('bob', 'POST', '/auth/change-password', '{"currentPassword": "canary four for bob", "newPassword": "canary eight for bob"}');
SELECT pg_temp.keep('bob');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "rita", "password": "canary six for rita"}');
SELECT pg_temp.keep('rita');
SELECT pg_temp.send('rita', 'POST', '/auth/change-password', '{"currentPassword": "canary six for rita", "newPassword": "canary nine for rita"}');
SELECT pg_temp.keep('rita');
SELECT count(*) FROM pg_temp.news();

\echo === Writes of entities
SELECT pg_temp.make('eve', 'room', '/api/v1/rooms', '{"data": {"type": "rooms", "attributes": {"number": 12}}}');
SELECT pg_temp.make('eve', 'garden', '/api/v1/gardens', '{"data": {"type": "gardens", "attributes": {"name": "behind"}}}');
SELECT pg_temp.make('eve', 'tag', '/api/v1/tags', '{"data": {"type": "tags", "attributes": {"word": "loud"}}}');
SELECT pg_temp.make('eve', 'other', '/api/v1/tags', '{"data": {"type": "tags", "attributes": {"word": "late"}}}');
SELECT pg_temp.make('eve', 'guest', '/api/v1/guests', '{"data": {"type": "guests", "attributes": {"name": "Gil"}}}');
SELECT pg_temp.make('eve', 'party', '/api/v1/parties', '{"data": {"type": "parties", "attributes": {"title": "New Year", "price": 10.5, "notes": {"b": 1, "a": [null]}},
	"relationships": {"place": {"data": {"type": "rooms", "id": ":room"}}, "tags": {"data": [{"type": "tags", "id": ":tag"}]},
	"guests": {"data": [{"type": "guests", "id": ":guest"}]}}}}');
SELECT pg_temp.news();
-- what does not change is left out, and all of it is still a write
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/parties/:party', '{"data": {"type": "parties", "id": ":party",
	"attributes": {"title": "New Year", "price": 12.00, "paid": true, "notes": null},
	"relationships": {"place": {"data": {"type": "gardens", "id": ":garden"}}, "tags": {"data": [{"type": "tags", "id": ":other"}]}}}}', '{"if-match": "*"}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/parties/:party', '{"data": {"type": "parties", "id": ":party", "attributes": {"price": "12"}}}', '{"if-match": "*"}');
SELECT pg_temp.send('eve', 'POST', '/api/v1/parties/:party/relationships/tags', '{"data": [{"type": "tags", "id": ":tag"}, {"type": "tags", "id": ":other"}]}');
SELECT pg_temp.send('eve', 'DELETE', '/api/v1/parties/:party/relationships/tags', '{"data": [{"type": "tags", "id": ":other"}]}', '{"if-match": "*"}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/parties/:party/relationships/tags', '{"data": []}', '{"if-match": "*"}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/parties/:party/relationships/guests', '{"data": []}', '{"if-match": "*"}');
SELECT pg_temp.send('eve', 'POST', '/api/v1/parties/:party/relationships/guests', '{"data": [{"type": "guests", "id": ":guest"}]}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/guests/:guest/relationships/party', '{"data": null}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/guests/:guest/relationships/party', '{"data": {"type": "parties", "id": ":party"}}');
SELECT pg_temp.news();

\echo === Deletion, with what hangs on it
SELECT pg_temp.send('eve', 'DELETE', '/api/v1/gardens/:garden');
SELECT pg_temp.send('eve', 'DELETE', '/api/v1/parties/:party', NULL, '{"if-match": "*"}');
SELECT pg_temp.news();

\echo === Atomic operations
SELECT pg_temp.send('eve', 'POST', '/api/v1/operations', '{"atomic:operations": [
	{"op": "add", "data": {"type": "rooms", "lid": "a", "attributes": {"number": 20}}},
	{"op": "add", "data": {"type": "rooms", "attributes": {"number": 21}}},
	{"op": "update", "data": {"type": "rooms", "lid": "a", "attributes": {"number": 22}}},
	{"op": "remove", "ref": {"type": "rooms", "id": ":room"}}]}');
INSERT INTO made SELECT 'room' || n + 20, body->'atomic:results'->n->'data'->>'id' FROM answer, generate_series(0, 1) n;
SELECT pg_temp.news();

\echo === What was refused is recorded, although it is undone
SELECT pg_temp.send('eve', 'POST', '/api/v1/operations', '{"atomic:operations": [
	{"op": "add", "data": {"type": "rooms", "attributes": {"number": 30}}},
	{"op": "add", "data": {"type": "rooms", "attributes": {"number": 21}}}]}');
SELECT count(*) FROM audit_test.room WHERE number = 30;
SELECT pg_temp.send('eve', 'POST', '/api/v1/rooms', '{"data": {"type": "rooms", "attributes": {"number": 21}}}');
SELECT pg_temp.send('eve', 'POST', '/api/v1/rooms', '{"data": {"type": "rooms", "attributes": {"number": "many"}}}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/rooms/:room', '{"data": {"type": "rooms", "id": ":room", "attributes": {"number": 1}}}');
SELECT pg_temp.send('eve', 'DELETE', '/api/v1/rooms/no%20uuid');
SELECT pg_temp.send('rita', 'POST', '/api/v1/parties', '{"data": {"type": "parties", "attributes": {"title": "x"}}}');
SELECT pg_temp.send('rita', 'PATCH', '/api/v1/rooms/:room21', '{"data": {"type": "rooms", "id": ":room21", "attributes": {"number": 1}}}');
SELECT pg_temp.send('rita', 'GET', '/api/v1/rooms');
SELECT pg_temp.send('rita', 'GET', '/api/v1/parties');
SELECT pg_temp.send('rita', 'GET', '/api/v1/parties?filter=canary==1');
SELECT pg_temp.send(NULL, 'GET', '/api/v1/parties', NULL, '{"authorization": "Bearer canary"}');
SELECT pg_temp.send(NULL, 'GET', '/api/v1/parties');
SELECT pg_temp.send('eve', 'POST', '/api/v1/nothings', '{}');
SELECT pg_temp.news();

\echo === The SuperAdmin stays the actor in a tenant
SELECT pg_temp.send('root', 'PATCH', '/api/v1/rooms/:room21', '{"data": {"type": "rooms", "id": ":room21", "attributes": {"number": 5}}}',
	jsonb_build_object('x-tenant-id', id)) FROM made WHERE name = 'acme';
SELECT pg_temp.news();
SELECT DISTINCT ip, request_id FROM entityapi.audit;

\echo === GET /manage/audit
CREATE FUNCTION pg_temp.list(who text, query text) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.send(who, 'GET', '/manage/audit' || query);
	SELECT CASE WHEN status = 200 THEN (SELECT concat(count(*), ': ', string_agg(DISTINCT r->>'action', ' ' ORDER BY r->>'action'))
			FROM jsonb_array_elements(body->'data') r)
		ELSE (SELECT concat_ws(' ', status, e->>'code', e->'source', e->>'detail') FROM jsonb_array_elements(body->'errors') e LIMIT 1) END
	FROM answer
$$;
SELECT pg_temp.list('root', '?page[size]=100&filter=action=like=ENTITY_%25;outcome==SUCCESS');
SELECT pg_temp.named(jsonb_pretty(body->'data'->0 || '{"id": "<id>"}')), body->'meta' FROM answer;
SELECT pg_temp.list('root', '?page[size]=100&filter=targetId==' || id) FROM made WHERE name = 'party';
SELECT pg_temp.list('root', '?filter=tenantId==' || id || ';action==TENANT_CREATED') FROM made WHERE name = 'beta';
SELECT pg_temp.list('root', '?filter=tenantId=isnull=true;actorId=isnull=true');
SELECT pg_temp.list('root', '?filter=actorId==' || id || ';targetType=in=(rooms,user);at=ge=2031-03-15T12:00:00Z') FROM made WHERE name = 'root';
SELECT pg_temp.list('root', '?filter=requestId!=request');
SELECT pg_temp.list('root', '?filter=(outcome==DENIED,outcome==FAILURE);at=lt=2031-03-15T12:00:01Z&page[size]=100');
SELECT pg_temp.list('root', '?filter=at=gt=2031-03-15T12:00:00Z');
SELECT pg_temp.list('root', q) FROM unnest(ARRAY['?filter=id==1', '?filter=changes==1', '?filter=actor.id==1', '?filter=at==yesterday', '?filter=tenantId==1',
	'?filter=tenantId=gt=00000000-0000-0000-0000-000000000000', '?filter=action=like=x%5C', '?filter=action', '?filter=at=isnull=maybe',
	'?page[size]=101', '?page[size]=0', '?page[number]=1', '?page[after]=x', '?page[after]=', '?sort=at', '?include=actor', '?filter=outcome==x&filter=outcome==y']) q;

-- Page by page all come, once each, and none of another tenant
CREATE FUNCTION pg_temp.walk(who text, size int, filter text DEFAULT '') RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
	after text := '';
BEGIN
	LOOP
		PERFORM pg_temp.send(who, 'GET', '/manage/audit?page[size]=' || size || filter || after);
		RETURN QUERY SELECT jsonb_array_elements(body->'data') FROM answer;
		SELECT '&page[after]=' || (body->'meta'->'page'->>'after') INTO after FROM answer;
		EXIT WHEN after IS NULL;
	END LOOP;
END
$$;
SELECT count(*) = (SELECT count(*) FROM entityapi.audit), count(DISTINCT r->'id') = count(*), bool_and(ordered)
FROM (SELECT r, r->>'id' < lag(r->>'id') OVER () IS NOT FALSE AS ordered FROM pg_temp.walk('root', 7) r) w;
SELECT count(*), array_agg(DISTINCT pg_temp.named(r->>'tenantId')), array_agg(DISTINCT r->'actor'->>'username') FROM pg_temp.walk('bob', 2) r;
SELECT count(*) FROM pg_temp.walk('bob', 10, '&filter=tenantId==' || (SELECT id FROM made WHERE name = 'acme'));
SELECT count(*) FROM pg_temp.walk('bob', 10, '&filter=(tenantId==' || (SELECT id FROM made WHERE name = 'acme') || ',action!=x)');
SELECT pg_temp.list('rita', '');
SELECT pg_temp.send('root', 'POST', '/manage/audit', '{}');

\echo === Switched off
SELECT count(*) FROM pg_temp.news();
SELECT count(*) > 0 FROM entityapi.apply_manifest((SELECT jsonb_agg(CASE WHEN d->>'kind' = 'Service'
	THEN jsonb_set(d, '{spec,audit}', '{"entities": false}') ELSE d END) FROM jsonb_array_elements(entityapi.export_manifest()::jsonb) d));
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/rooms/:room21', '{"data": {"type": "rooms", "id": ":room21", "attributes": {"number": 6}}}');
SELECT entityapi.statement_count() > 0;
SELECT pg_temp.send('eve', 'POST', '/api/v1/rooms', '{"data": {"type": "rooms", "attributes": {"number": 40}}}');
SELECT entityapi.statement_count() AS off \gset
SELECT pg_temp.send('rita', 'GET', '/api/v1/rooms');
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SELECT pg_temp.news();
SELECT count(*) > 0 FROM entityapi.apply_manifest((SELECT jsonb_agg(CASE WHEN d->>'kind' = 'Service'
	THEN jsonb_set(d, '{spec,audit}', '{"identity": false}') ELSE d END) FROM jsonb_array_elements(entityapi.export_manifest()::jsonb) d));
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SELECT pg_temp.send('eve', 'PATCH', '/api/v1/rooms/:room21', '{"data": {"type": "rooms", "id": ":room21", "attributes": {"number": 7}}}');
SELECT entityapi.statement_count() > 0;
SELECT pg_temp.send('eve', 'POST', '/api/v1/rooms', '{"data": {"type": "rooms", "attributes": {"number": 41}}}');
SELECT entityapi.statement_count() - :off AS more;
SELECT regexp_replace(n, '[0-9a-f-]{36}', '<id>', 'g') FROM pg_temp.news() n;
SELECT count(*) > 0 FROM entityapi.apply_manifest((SELECT jsonb_agg(CASE WHEN d->>'kind' = 'Service'
	THEN d #- '{spec,audit}' ELSE d END) FROM jsonb_array_elements(entityapi.export_manifest()::jsonb) d));

\echo === No secret is in it
SELECT count(*) FILTER (WHERE a::text ~ 'canary|pass phrase|\$2[aby]\$|ear_|eyJ') AS found, count(*) > 50 FROM entityapi.audit a;

\echo === No transaction that may not write has a record
BEGIN READ ONLY;
SELECT pg_temp.named(a.status::text) FROM entityapi.handle('GET', '/api/v1/rooms',
	(SELECT jsonb_build_object('authorization', 'Bearer ' || access) FROM token WHERE name = 'rita'), NULL, NULL) a;
COMMIT;
SELECT pg_temp.news();

\echo === Functions for operators
SELECT entityapi.rotate_signing_key() AS kid \gset
SELECT entityapi.revoke_signing_key(:'kid'), entityapi.revoke_signing_key('none');
CREATE ROLE audit_report LOGIN IN ROLE entityapi_reader;
SELECT entityapi.map_role('audit_report', 'bob'), entityapi.map_role('audit_report', NULL);
DROP ROLE audit_report;
SELECT count(*) > 0 FROM entityapi.apply_manifest(entityapi.export_manifest());
SELECT replace(n, :'kid', '<kid>') FROM pg_temp.news() n;
\echo === Append-only, whoever asks
-- on other nodes the name ends in a number
SELECT DISTINCT regexp_replace(tableoid::regclass::text, '_\d{6}$', '') FROM entityapi.audit ORDER BY 1;
CREATE FUNCTION pg_temp.try(sql text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE sql;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END
$$;
CREATE FUNCTION pg_temp.attempts() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT format(s, r) || ': ' || pg_temp.try(format(s, r))
	FROM unnest(ARRAY['entityapi.audit', 'entityapi.audit_2031_03', 'entityapi.audit_default']) r,
		unnest(ARRAY['UPDATE %s SET action = action', 'DELETE FROM %s', 'DELETE FROM %s WHERE false', 'TRUNCATE %s',
			'MERGE INTO %s a USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE']) s
$$;
SELECT pg_temp.attempts();
SET session_replication_role = replica;
SELECT count(*) FROM pg_temp.attempts() t WHERE t LIKE '%append-only';
RESET session_replication_role;
GRANT entityapi_owner TO CURRENT_USER;
SET ROLE entityapi_owner;
SELECT pg_temp.try('DELETE FROM entityapi.audit'), pg_temp.try('TRUNCATE entityapi.audit_2031_03');
SET ROLE entityapi_client;
SELECT pg_temp.try('SELECT FROM entityapi.audit'), pg_temp.try('SELECT entityapi.purge_audit(now())'), pg_temp.try('DELETE FROM entityapi.audit');
RESET ROLE;

\echo === Months
SELECT relname FROM pg_class WHERE relnamespace = 'entityapi'::regnamespace AND relname LIKE 'audit_2%' AND relkind = 'r' ORDER BY 1;
SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND objid = 'entityapi.audit_2031_03'::regclass;
-- a month that was never foreseen
SET entityapi.clock = '2032-01-31T23:59:59.999999Z';
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SET entityapi.clock = '2032-02-01T00:00:00Z';
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SET entityapi.clock = '2030-12-24T18:00:00Z';
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
-- a month that cannot be made: its name is taken
CREATE TABLE entityapi.audit_2030_08 ();
SET entityapi.clock = '2030-08-24T18:00:00Z';
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SELECT regexp_replace(tableoid::regclass::text, '_\d{6}$', ''), count(*) FROM entityapi.audit WHERE at NOT BETWEEN '2031-03-01' AND '2031-04-01' GROUP BY 1 ORDER BY 1;
-- once it can be, the record moves
DROP TABLE entityapi.audit_2030_08;
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "eve", "password": "wrong"}');
SELECT regexp_replace(tableoid::regclass::text, '_\d{6}$', ''), count(*) FROM entityapi.audit WHERE at < '2030-09-01' GROUP BY 1 ORDER BY 1;
SELECT pg_temp.try('DELETE FROM entityapi.audit_default');
SELECT relname FROM pg_class WHERE relnamespace = 'entityapi'::regnamespace AND relname LIKE 'audit_2%' AND relkind = 'r' ORDER BY 1;
SET entityapi.clock = '2031-03-15T12:05:00Z';
SELECT pg_temp.send(NULL, 'POST', '/auth/login', '{"username": "root", "password": "first pass phrase"}');
SELECT pg_temp.keep('root');
SELECT pg_temp.list('root', '?page[size]=100&filter=at=lt=2031-01-01T00:00:00Z;tenantId==' || id) FROM made WHERE name = 'acme';

\echo === Purge
RESET entityapi.clock;
INSERT INTO entityapi.audit (id, at, tenant_id, action, outcome)
SELECT gen_random_uuid(), at::timestamptz, '00000000-0000-0000-0000-00000000000a', 'OLD', 'SUCCESS' FROM unnest(ARRAY['2001-01-31T23:00:00Z', '2001-02-01T00:00:00Z', '2001-02-28T00:00:00Z', '2001-03-01T00:00:00Z']) at;
SELECT entityapi.purge_audit(NULL);
SELECT entityapi.purge_audit('2001-02-28T23:59:59Z');
SELECT entityapi.purge_audit('2001-03-01T00:00:00Z');
SELECT at AT TIME ZONE 'UTC', regexp_replace(tableoid::regclass::text, '_\d{6}$', '') FROM entityapi.audit WHERE at < '2002-01-01';
SELECT entityapi.purge_audit('infinity');
SELECT count(*) FROM entityapi.audit WHERE at < '2002-01-01';
SELECT count(*) > 0 FROM entityapi.audit WHERE at > '2031-01-01';
SELECT action, outcome, actor_username = session_user, at > now() - interval '1 minute', regexp_replace(detail, 'before (?!2001).*,', 'before <now>,')
FROM entityapi.audit WHERE action = 'AUDIT_PURGED' ORDER BY at;

-- clean up
DELETE FROM entityapi.tenant;
DELETE FROM entityapi.account;
DELETE FROM entityapi.signing_key;
SELECT count(*) > 0 FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
DROP SCHEMA IF EXISTS audit_test;
