-- Entity requests through handle(): documents as they are, and how many
-- statements each request takes

\pset format unaligned
\pset tuples_only on
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
-- where every cache is discarded this takes longer than a token lives
SET entityapi.access_token_ttl = '1d';

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "entities_test"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Clerk": {}, "Guest": {}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Author"}, "spec": {
		"permissions": {"Clerk": ["create", "read", "update", "delete"], "Guest": ["read"]}, "fields": {
		"name": {"type": "string", "required": true, "maxLength": 40},
		"born": {"type": "date"},
		"books": {"type": "ref", "target": "Book", "relation": "OneToMany", "mappedBy": "author"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Shelf"}, "spec": {"plural": "shelves",
		"permissions": {"Clerk": ["create", "read", "update", "delete"], "Guest": ["read"]}, "fields": {
		"label": {"type": "string", "required": true, "unique": true}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Box"}, "spec": {
		"permissions": {"Clerk": ["create", "read", "update", "delete"]}, "fields": {
		"label": {"type": "string", "required": true}}}},
	{"apiVersion": "entityapi/v1", "kind": "OneOf", "metadata": {"name": "Place"}, "spec": {"members": ["Shelf", "Box"]}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Topic"}, "spec": {
		"permissions": {"Clerk": ["create", "read", "update", "delete"], "Guest": ["read"]}, "fields": {
		"word": {"type": "string", "required": true, "unique": true},
		"books": {"type": "ref", "target": "Book", "relation": "ManyToMany", "mappedBy": "topics"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Book"}, "spec": {"optimisticLocking": true,
		"permissions": {"Clerk": ["create", "read", "update", "delete"], "Guest": ["read"]}, "fields": {
		"title": {"type": "string", "required": true, "maxLength": 40},
		"price": {"type": "decimal", "precision": 20, "scale": 2},
		"pages": {"type": "integer", "minimum": 1},
		"inPrint": {"type": "boolean", "required": true, "default": true},
		"bought": {"type": "datetime"},
		"margin": {"type": "decimal", "readRoles": ["Clerk"], "writeRoles": ["Clerk"]},
		"author": {"type": "ref", "target": "Author", "relation": "ManyToOne", "required": true},
		"place": {"type": "oneof", "target": "Place", "onDelete": "setNull"},
		"topics": {"type": "ref", "target": "Topic", "relation": "ManyToMany"}}}}
]');

-- Who asks, and what resources are called here

CREATE TEMP TABLE token (who text PRIMARY KEY, access text);
CREATE TEMP TABLE resource (label text PRIMARY KEY, type text, id text);
CREATE TEMP TABLE answer (status int, headers jsonb, body text);

CREATE FUNCTION pg_temp.send(who text, method text, target text, headers jsonb, body text) RETURNS void
LANGUAGE sql AS $$
	TRUNCATE answer;
	INSERT INTO answer
	SELECT a.* FROM entityapi.handle(method, target,
		jsonb_build_object('x-request-id', 'r')
		|| coalesce((SELECT jsonb_build_object('authorization', 'Bearer ' || access) FROM token t WHERE t.who = send.who), '{}')
		|| headers, convert_to(body, 'UTF8'), '192.0.2.1') a
$$;

-- Ids become the names of resources, also in what is sent: <Emma>

CREATE FUNCTION pg_temp.named(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM resource LOOP
		t := replace(t, r.id, '<' || r.label || '>');
	END LOOP;
	RETURN regexp_replace(t, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '<id>', 'g');
END
$$;

CREATE FUNCTION pg_temp.with_ids(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM resource LOOP
		t := replace(t, '<' || r.label || '>', r.id);
	END LOOP;
	RETURN t;
END
$$;

-- One request.  An answer is a status, headers of interest, and the body; an
-- error object is a line of its own.

CREATE FUNCTION pg_temp.ask(who text, method text, target text, body text DEFAULT NULL,
							headers jsonb DEFAULT '{}', pretty boolean DEFAULT false) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	a answer;
BEGIN
	PERFORM pg_temp.send(who, method, pg_temp.with_ids(target),
		'{"content-type": "application/vnd.api+json"}' || headers, pg_temp.with_ids(body));
	SELECT * INTO a FROM answer;
	RETURN NEXT concat_ws(' ', a.status, 'ETag: ' || (a.headers->>'etag'),
		'Location: ' || pg_temp.named(a.headers->>'location'), 'Allow: ' || (a.headers->>'allow'));
	IF a.status >= 400 THEN
		RETURN QUERY SELECT format('%s %s: %s', e->>'code', e->'source', pg_temp.named(e->>'detail'))
			FROM jsonb_array_elements(a.body::jsonb->'errors') e;
	ELSIF a.body IS NOT NULL THEN
		RETURN NEXT pg_temp.named(CASE WHEN pretty THEN jsonb_pretty(a.body::jsonb) ELSE a.body END);
	END IF;
END
$$;

-- Create and give a name

CREATE FUNCTION pg_temp.make(label text, type text, attributes jsonb, relationships jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	a answer;
BEGIN
	PERFORM pg_temp.send('clerk', 'POST', '/api/v1/' || type, '{"content-type": "application/vnd.api+json"}',
		pg_temp.with_ids(jsonb_build_object('data', jsonb_build_object(
			'type', type, 'attributes', attributes, 'relationships', relationships))::text));
	SELECT * INTO a FROM answer;
	INSERT INTO resource VALUES (label, type, a.body::jsonb->'data'->>'id');
	RETURN a.status;
END
$$;

CREATE FUNCTION pg_temp.to_one(label text) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('data', jsonb_build_object('type', r.type, 'id', r.id)) FROM resource r WHERE r.label = to_one.label
$$;

CREATE FUNCTION pg_temp.to_many(VARIADIC labels text[]) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('data', jsonb_agg(pg_temp.to_one(l)->'data')) FROM unnest(labels) l
$$;

-- A tenant with two users, whose temporary passwords are changed

CREATE FUNCTION pg_temp.identity(who text, method text, target text, body jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT pg_temp.send(who, method, target, '{"content-type": "application/json"}', body::text);
	SELECT body::jsonb FROM answer
$$;

CREATE FUNCTION pg_temp.log_in(username text, password text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO token SELECT username, pg_temp.identity(NULL, 'POST', '/auth/login',
		jsonb_build_object('username', username, 'password', password))->>'accessToken'
	ON CONFLICT (who) DO UPDATE SET access = excluded.access
$$;

SELECT entityapi.create_superadmin('entities.root', 'as plain as a test 1') IS NOT NULL AS made;
SELECT pg_temp.log_in('entities.root', 'as plain as a test 1');
INSERT INTO resource SELECT 'tenant', '', pg_temp.identity('entities.root', 'POST', '/manage/tenants',
	'{"name": "Entities test", "slug": "entities-test"}')->>'id';
SELECT pg_temp.identity('entities.root', 'POST', pg_temp.with_ids('/manage/tenants/<tenant>/users'),
	jsonb_build_object('username', who, 'roles', jsonb_build_array(initcap(who)),
		'temporaryPassword', 'as plain as a test 2'))->'roles'
FROM unnest(ARRAY['clerk', 'guest']) who;
SELECT pg_temp.log_in(who, 'as plain as a test 2') FROM unnest(ARRAY['clerk', 'guest']) who;
INSERT INTO token SELECT who, pg_temp.identity(who, 'POST', '/auth/change-password',
	'{"currentPassword": "as plain as a test 2", "newPassword": "as plain as a test 3"}')->>'accessToken'
FROM unnest(ARRAY['clerk', 'guest']) who
ON CONFLICT (who) DO UPDATE SET access = excluded.access;

-- Create: the whole resource, with all its relationships

SELECT pg_temp.make('Jane', 'authors', '{"name": "Jane Austen", "born": "1775-12-16"}');
SELECT pg_temp.make('Hall', 'shelves', '{"label": "Hall"}');
SELECT pg_temp.make('Attic', 'boxes', '{"label": "Attic"}');
SELECT pg_temp.make(t, 'topics', jsonb_build_object('word', t)) FROM unnest(ARRAY['love', 'money']) t;
SELECT pg_temp.make('Emma', 'books', '{"title": "Emma", "price": "123456789012345678.90", "pages": 474, "bought": "2026-11-20T18:29:00.50+01:00", "margin": 0.1}',
	jsonb_build_object('author', pg_temp.to_one('Jane'), 'place', pg_temp.to_one('Hall'), 'topics', pg_temp.to_many('love', 'money', 'love')));
SELECT pg_temp.named(body) FROM answer;
SELECT jsonb_pretty(headers - 'x-entityapi-principal') FROM (SELECT pg_temp.named(headers::text)::jsonb AS headers FROM answer) a;

-- Read: a document with everything in it, and what a Guest sees of it

SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books/<Emma>?include=author,place,topics', pretty => true);
SELECT pg_temp.ask('guest', 'GET', '/api/v1/books/<Emma>');
SELECT pg_temp.ask('guest', 'GET', '/api/v1/books/<Emma>?fields[books]=title', headers => '{"if-none-match": "\"0\""}');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books/<Emma>?fields[books]=title,margin', headers => '{"if-none-match": "\"0\""}');
SELECT pg_temp.ask('guest', 'GET', '/api/v1/books/<Emma>?fields[books]=title,author&include=author.books&fields[authors]=name');

-- Lists

SELECT pg_temp.make('Book ' || n, 'books', jsonb_build_object('title', 'Book ' || n, 'price', n, 'inPrint', n % 2 = 0),
	jsonb_build_object('author', pg_temp.to_one('Jane'), 'place', pg_temp.to_one(CASE WHEN n % 3 = 0 THEN 'Attic' ELSE 'Hall' END)))
FROM generate_series(1, 3) n;
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books?filter=price=lt=1e6&sort=-price&page[size]=1&page[number]=2&fields[books]=title,price');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books?filter=place.label==Attic,topics.word==love&sort=title&fields[books]=title&page[totals]=false');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/authors?filter=name==Nobody&include=books', pretty => true);

-- Update: what is not named stays; a version more each time

SELECT pg_temp.ask('clerk', 'PATCH', '/api/v1/books/<Emma>',
	'{"data": {"type": "books", "id": "<Emma>", "attributes": {"price": 9.9, "bought": null},
	  "relationships": {"place": {"data": {"type": "boxes", "id": "<Attic>"}}, "topics": {"data": []}}}}', '{"if-match": "\"0\""}');
SELECT pg_temp.ask('clerk', 'PATCH', '/api/v1/books/<Emma>', '{"data": {"type": "books", "id": "<Emma>"}}', '{"if-match": "\"0\""}');
SELECT pg_temp.ask('clerk', 'PATCH', '/api/v1/books/<Emma>', '{"data": {"type": "books", "id": "<Emma>"}}');

-- Delete: refused, or what refers to it is emptied, which is a write of that

SELECT pg_temp.ask('clerk', 'DELETE', '/api/v1/authors/<Jane>');
SELECT pg_temp.ask('clerk', 'DELETE', '/api/v1/boxes/<Attic>');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books/<Emma>?fields[books]=place');
SELECT pg_temp.ask('clerk', 'DELETE', '/api/v1/books/<Emma>', headers => '{"if-match": "\"2\""}');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books/<Emma>');

-- What is wrong, with its place

SELECT pg_temp.ask('clerk', 'POST', '/api/v1/books',
	'{"data": {"type": "books", "attributes": {"title": 5, "pages": 0, "price": 0.001, "inPrint": "yes", "bought": "now", "isbn": 1},
	  "relationships": {"author": {"data": {"type": "topics", "id": "<love>"}}, "place": {"data": {"type": "authors", "id": "<Jane>"}},
	  "topics": {"data": {"type": "topics", "id": "<love>"}}}}}');
SELECT pg_temp.ask('clerk', 'POST', '/api/v1/topics', '{"data": {"type": "topics", "attributes": {"word": "love"}}}');
SELECT pg_temp.ask('clerk', 'POST', '/api/v1/topics', '{"data": {"type": "topics"');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books?filter=pages==many&sort=nothing&page[size]=0&include=cover&fields[books]=isbn&order=up');
SELECT pg_temp.ask('clerk', 'GET', '/api/v1/books?filter=title==');
SELECT pg_temp.ask('guest', 'GET', '/api/v1/books?filter=margin=gt=0');
SELECT pg_temp.ask('guest', 'GET', '/api/v1/boxes');
SELECT pg_temp.ask('guest', 'DELETE', '/api/v1/books/<Book 1>');
SELECT pg_temp.ask(NULL, 'GET', '/api/v1/books');
SELECT pg_temp.ask('clerk', 'PUT', '/api/v1/books');
SELECT pg_temp.ask('clerk', 'POST', '/api/v1/books', '{}', '{"content-type": "application/json"}');

-- Statements.  The number depends on what is asked for, not on how much comes
-- back; each relationship that is included costs one more at most.  A total that
-- is counted on an index is none.
SET entityapi.direct_scans = on;

CREATE FUNCTION pg_temp.statements(method text, target text, body text DEFAULT NULL, headers jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	counted int;
	a answer;
BEGIN
	PERFORM entityapi.statement_count();
	PERFORM pg_temp.send('clerk', method, pg_temp.with_ids(target),
		'{"content-type": "application/vnd.api+json"}' || headers, pg_temp.with_ids(body));
	counted := entityapi.statement_count();
	SELECT * INTO a FROM answer;
	RETURN format('%s: %s statements, %s resources, %s included', a.status, counted,
		CASE jsonb_typeof(a.body::jsonb->'data') WHEN 'array' THEN jsonb_array_length(a.body::jsonb->'data') WHEN 'object' THEN 1 END,
		jsonb_array_length(a.body::jsonb->'included'));
END
$$;

SELECT count(pg_temp.make('Author ' || n, 'authors', jsonb_build_object('name', 'Author ' || n))) FROM generate_series(1, 20) n;
SELECT count(pg_temp.make('Work ' || n, 'books', jsonb_build_object('title', 'Work ' || n),
	jsonb_build_object('author', pg_temp.to_one('Author ' || (n + 1) / 2), 'topics', pg_temp.to_many('love', 'money'))))
FROM generate_series(1, 40) n;

SELECT size, target || query AS target, pg_temp.statements('GET', '/api/v1/' || target || '?sort=-id&page[size]=' || size || query)
FROM unnest(ARRAY[
	'books', 'authors',
	'books?&page[totals]=false', 'books?&fields[books]=title', 'books?&fields[books]=title,author',
	'books?&include=author', 'books?&include=author,topics',
	'authors?&include=books', 'authors?&include=books.topics',
	'books?&filter=author.name=ge=A', 'books?&filter=topics.word==love']) WITH ORDINALITY AS t (request, n),
	LATERAL (SELECT split_part(request, '?', 1) AS target, split_part(request, '?', 2) AS query) p,
	unnest(ARRAY[1, 20]) size
ORDER BY n, size;
SELECT pg_temp.statements('GET', '/api/v1/shelves/<Hall>');
SELECT pg_temp.statements('GET', '/api/v1/authors/<Jane>');
SELECT pg_temp.statements('GET', '/api/v1/books/<Book 1>?include=author,place,topics');
SELECT pg_temp.statements('POST', '/api/v1/shelves', '{"data": {"type": "shelves", "attributes": {"label": "new"}}}');
SELECT pg_temp.statements('PATCH', '/api/v1/shelves/<Hall>', '{"data": {"type": "shelves", "id": "<Hall>", "attributes": {"label": "Stairs"}}}');
SELECT pg_temp.statements('DELETE', '/api/v1/books/<Book 1>', NULL, '{"if-match": "*"}');

-- Nothing is left behind

SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity) || '{Roles/Clerk,Roles/Guest}'::text[]);
DROP SCHEMA entities_test;
DELETE FROM entityapi.tenant;
DELETE FROM entityapi.account;
DELETE FROM entityapi.signing_key;
