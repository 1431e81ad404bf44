-- Identity: SuperAdmins, tenants, users, login, tokens, passwords

\pset format unaligned
\pset tuples_only on
SET client_encoding = 'UTF8';
SET client_min_messages = warning;
SET entityapi.bcrypt_cost = 10;

-- Helpers.  Every answer is shown with what differs from run to run masked;
-- an error object is a line of its own.

CREATE TEMP TABLE token (name text PRIMARY KEY, access text, refresh text);
CREATE TEMP TABLE answer (headers jsonb, body jsonb);

CREATE FUNCTION pg_temp.mask(t text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(
		regexp_replace($1,
		'"temporaryPassword":"[0-9A-Za-z]{22}"', '"temporaryPassword":<word>'),
		'"ear_[0-9A-Za-z]{71}"', '<refresh>'),
		'"eyJ[\w-]+\.[\w-]+\.[\w-]{43}"', '<access>'),
		'"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"', '<id>', 'g'),
		'"\d{4}-\d\d-\d\dT[\d:.]+Z"', '<time>', 'g')
$$;

CREATE FUNCTION pg_temp.send(method text, target text, body text,
							 headers jsonb) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	a record;
BEGIN
	SELECT * INTO a FROM entityapi.handle(method, target,
		'{"content-type": "application/json", "x-request-id": "r"}' || headers,
		convert_to(body, 'UTF8'), '192.0.2.1');
	DELETE FROM answer;
	INSERT INTO answer VALUES (a.headers, a.body::jsonb);
	IF a.status < 400 THEN
		RETURN NEXT a.status || coalesce(' ' || pg_temp.mask(a.body), '');
	ELSE
		RETURN QUERY SELECT format('%s %s%s: %s', a.status, e->>'code',
			coalesce(' ' || (e->'source')::text, ''), e->>'detail')
			FROM jsonb_array_elements(a.body::jsonb->'errors') e;
	END IF;
END
$$;

CREATE FUNCTION pg_temp.call(who text, method text, target text,
							 body text DEFAULT NULL) RETURNS SETOF text
LANGUAGE sql AS $$
	SELECT pg_temp.send(method, target, body, coalesce(
		(SELECT jsonb_build_object('authorization', 'Bearer ' || access)
		 FROM token WHERE name = who), '{}'))
$$;

-- Send, and keep the pair of tokens of the answer under a name
CREATE FUNCTION pg_temp.pair(who text, target text, body text,
							 caller text DEFAULT NULL) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT pg_temp.call(caller, 'POST', target, body);
	INSERT INTO token
	SELECT who, a.body->>'accessToken', a.body->>'refreshToken'
	FROM answer a WHERE a.body ? 'accessToken'
	ON CONFLICT (name) DO UPDATE
	SET access = excluded.access, refresh = excluded.refresh;
END
$$;

CREATE FUNCTION pg_temp.login(who text, username text, password text)
RETURNS SETOF text LANGUAGE sql AS $$
	SELECT pg_temp.pair(who, '/auth/login', json_build_object(
		'username', username, 'password', password)::text)
$$;

CREATE FUNCTION pg_temp.refresh(who text, old text) RETURNS SETOF text
LANGUAGE sql AS $$
	SELECT pg_temp.pair(who, '/auth/refresh', json_build_object(
		'refreshToken', (SELECT refresh FROM token WHERE name = old))::text)
$$;

CREATE FUNCTION pg_temp.id_of(username text) RETURNS uuid
LANGUAGE sql STABLE AS $$
	SELECT id FROM entityapi.account WHERE username_key = $1
$$;

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest($$[
	{"apiVersion": "entityapi/v1", "kind": "Roles",
	 "metadata": {"name": "roles"},
	 "spec": {"roles": {"Viewer": {}, "Accountant": {}}}},
	{"apiVersion": "entityapi/v1", "kind": "Service",
	 "metadata": {"name": "service"},
	 "spec": {"defaultRoles": ["Viewer"]}},
	{"apiVersion": "entityapi/v1", "kind": "SecurityAttributes",
	 "metadata": {"name": "attributes"},
	 "spec": {"attributes": {
		"department": {"type": "string", "allowedValues": ["Sales", "IT"]},
		"regions": {"type": "string[]", "allowedValues": ["EU", "US"]},
		"level": {"type": "integer"}, "rate": {"type": "number"},
		"external": {"type": "boolean"}}}}
]$$);

\echo === SuperAdmin
SELECT entityapi.create_superadmin('  Root ', 'first pass phrase') IS NOT NULL;
SELECT entityapi.create_superadmin('rOOT', 'first pass phrase');
SELECT entityapi.create_superadmin('other', 'too short');
SELECT entityapi.create_superadmin('other', 'Administrator');
SELECT entityapi.create_superadmin('Other Root 12', 'other ROOT 12 ');
SELECT entityapi.create_superadmin(E'a\tb', 'first pass phrase');
SELECT username, username_key, left(password_hash, 7), length(password_hash)
FROM entityapi.account;

\echo === Login
SELECT pg_temp.login('root', 'root', 'first pass phrase');
SELECT pg_temp.login('none', 'root', 'first pass phrase ');
SELECT headers->>'www-authenticate', headers->>'cache-control' FROM answer;
SELECT pg_temp.login('none', 'nobody', 'first pass phrase');
SELECT pg_temp.login('none', 'root', '');
SELECT pg_temp.login('none', '', '');
SELECT pg_temp.login('none', repeat('x', 3000), repeat('y', 3000));
SELECT pg_temp.call(NULL, 'POST', '/auth/login', '{"username": null, "passwort": "x"}');
SELECT pg_temp.call(NULL, 'POST', '/auth/login', '{"username": 1, "password": ["x"]}');
SELECT pg_temp.call(NULL, 'POST', '/auth/login', '["root"]');
SELECT pg_temp.call(NULL, 'POST', '/auth/login', '{"username": "root", ');
SELECT pg_temp.call(NULL, 'POST', '/auth/login', NULL);

\echo === Access token
CREATE FUNCTION pg_temp.decode64(t text) RETURNS text LANGUAGE sql AS $$
	SELECT convert_from(decode(rpad(translate(t, '-_', '+/'),
		(length(t) + 3) / 4 * 4, '='), 'base64'), 'UTF8')
$$;
CREATE FUNCTION pg_temp.encode64(b bytea) RETURNS text LANGUAGE sql AS $$
	SELECT translate(encode(b, 'base64'), E'+/=\n', '-_')
$$;
SELECT pg_temp.mask(pg_temp.decode64(split_part(access, '.', 1)))
FROM token WHERE name = 'root';
SELECT pg_temp.mask((pg_temp.decode64(split_part(access, '.', 2))::jsonb - 'iat' - 'exp')::text)
FROM token WHERE name = 'root';
SELECT (c->>'exp')::int - (c->>'iat')::int
FROM token, LATERAL (SELECT pg_temp.decode64(split_part(access, '.', 2))::jsonb AS c) c
WHERE name = 'root';
SELECT pg_temp.call('root', 'GET', '/auth/me');
SELECT pg_temp.call(NULL, 'GET', '/auth/me');
SELECT headers->>'www-authenticate' FROM answer;
SELECT pg_temp.send('GET', '/auth/me', NULL, '{"authorization": "Basic cm9vdDpyb290"}');
SELECT headers->>'www-authenticate' FROM answer;
SELECT pg_temp.send('GET', '/auth/me', NULL, jsonb_build_object('authorization', 'bEARER   ' || access)) LIKE '200 %'
FROM token WHERE name = 'root';
SELECT pg_temp.send('GET', '/auth/me', NULL, jsonb_build_object('authorization', 'Bearer ' || access, 'x-api-key', 'eap_x'))
FROM token WHERE name = 'root';
SELECT pg_temp.send('GET', '/auth/me', NULL, jsonb_build_object('authorization', jsonb_build_array('Bearer ' || access, 'Bearer ' || access)))
FROM token WHERE name = 'root';
SELECT pg_temp.send('GET', '/auth/me', NULL, '{"x-api-key": "eap_x"}');
SELECT pg_temp.send('GET', '/auth/me', NULL, jsonb_build_object('authorization', 'Bearer ' || refresh))
FROM token WHERE name = 'root';

\echo === Forged tokens, signed with the right key unless they say otherwise
CREATE FUNCTION pg_temp.forge(header jsonb, claims jsonb,
							  hash text DEFAULT 'sha256') RETURNS text
LANGUAGE sql SET search_path = public, entityapi AS $$
	SELECT s.t || '.' || pg_temp.encode64(hmac(convert_to(s.t, 'UTF8'), secret, hash))
	FROM signing_key, token, LATERAL (
		SELECT pg_temp.encode64(convert_to(jsonb_strip_nulls(
			pg_temp.decode64(split_part(access, '.', 1))::jsonb || header)::text, 'UTF8'))
			|| '.' || pg_temp.encode64(convert_to(jsonb_strip_nulls(
			pg_temp.decode64(split_part(access, '.', 2))::jsonb || claims)::text, 'UTF8')) AS t) s
	WHERE name = 'root'
$$;
CREATE FUNCTION pg_temp.accepted(t text) RETURNS text
LANGUAGE sql AS $$
	SELECT min(split_part(line, ' ', 1)) || ' ' || count(*)
	FROM pg_temp.send('GET', '/auth/me', NULL, jsonb_build_object('authorization', 'Bearer ' || t)) line
$$;
SELECT 'as it is', pg_temp.accepted(pg_temp.forge('{}', '{}'));
SELECT label, pg_temp.accepted(pg_temp.forge(header::jsonb, claims::jsonb, hash))
FROM (VALUES
	('alg none', '{"alg": "none"}', '{}', 'sha256'),
	('alg HS384', '{"alg": "HS384"}', '{}', 'sha384'),
	('alg hs256', '{"alg": "hs256"}', '{}', 'sha256'),
	('no alg', '{"alg": null}', '{}', 'sha256'),
	('typ JWT', '{"typ": "JWT"}', '{}', 'sha256'),
	('no typ', '{"typ": null}', '{}', 'sha256'),
	('no kid', '{"kid": null}', '{}', 'sha256'),
	('unknown kid', '{"kid": "../../x"}', '{}', 'sha256'),
	('kid array', '{"kid": ["x"]}', '{}', 'sha256'),
	('crit', '{"crit": ["exp"]}', '{}', 'sha256'),
	('jku', '{"jku": "https://example.com"}', '{}', 'sha256'),
	('jwk', '{"jwk": {}}', '{}', 'sha256'),
	('x5u', '{"x5u": "x"}', '{}', 'sha256'),
	('zip', '{"zip": "DEF"}', '{}', 'sha256'),
	('b64', '{"b64": false}', '{}', 'sha256'),
	('no exp', '{}', '{"exp": null}', 'sha256'),
	('exp past', '{}', '{"exp": 1000}', 'sha256'),
	('exp text', '{}', '{"exp": "9999999999"}', 'sha256'),
	('exp fraction', '{}', '{"exp": 9999999999.5}', 'sha256'),
	('exp huge', '{}', '{"exp": 1e308}', 'sha256'),
	('no iat', '{}', '{"iat": null}', 'sha256'),
	('iat future', '{}', '{"iat": 9999999999}', 'sha256'),
	('nbf future', '{}', '{"nbf": 9999999999}', 'sha256'),
	('no aud', '{}', '{"aud": null}', 'sha256'),
	('aud array', '{}', '{"aud": ["entityapi"]}', 'sha256'),
	('aud other', '{}', '{"aud": "other"}', 'sha256'),
	('no iss', '{}', '{"iss": null}', 'sha256'),
	('iss other', '{}', '{"iss": "other"}', 'sha256'),
	('no sid', '{}', '{"sid": null}', 'sha256'),
	('sid other', '{}', '{"sid": "00000000-0000-0000-0000-000000000000"}', 'sha256'),
	('sub other', '{}', '{"sub": "00000000-0000-0000-0000-000000000000"}', 'sha256'),
	('sub no uuid', '{}', '{"sub": "root"}', 'sha256')
) AS v(label, header, claims, hash);
SELECT label, pg_temp.accepted(t) FROM token, LATERAL (VALUES
	('padded', access || '='),
	('spaced', access || ' x'),
	('two parts', split_part(access, '.', 1) || '.' || split_part(access, '.', 2)),
	('no signature', split_part(access, '.', 1) || '.' || split_part(access, '.', 2) || '.'),
	('four parts', access || '.x'),
	('too long', access || repeat('A', 8192)),
	('nothing', ''), ('dots', '..'),
	-- the last digit of 43 holds two bits of nothing
	('not canonical', left(access, -1) || translate(right(access, 1),
		'AEIMQUYcgkosw048', 'BFJNRVZdhlptx159')),
	('authority claimed', split_part(access, '.', 1) || '.'
		|| pg_temp.encode64('{"isSuperAdmin":true}') || '.' || split_part(access, '.', 3))
	) AS v(label, t) WHERE name = 'root';

\echo === Tenants
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "Acme Inc", "slug": "acme",
	"admin": {"username": "Ada", "email": "ada@acme.example", "temporaryPassword": "temporary for ada"}}');
SELECT headers->>'location' = '/manage/tenants/' || (body->>'id') FROM answer;
SELECT body->>'id' AS acme FROM answer \gset
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "Beta", "slug": "beta", "admin": {"username": "bob"}}');
SELECT body->>'id' AS beta, body->'admin'->>'temporaryPassword' AS word FROM answer \gset
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "Acme Inc", "slug": "acme"}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "Gamma", "slug": "beta"}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "Gamma", "slug": "gamma", "admin": {"username": "ADA"}}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "", "slug": "Not A Slug", "status": "ACTIVE",
	"admin": {"username": " ", "email": "x", "roles": [], "temporaryPassword": 5}}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{"name": "", "slug": "Not A Slug",
	"admin": {"username": " ", "email": "x", "temporaryPassword": "short"}}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants', '{}');
SELECT pg_temp.call(NULL, 'POST', '/manage/tenants', '{}');
SELECT name, slug FROM entityapi.tenant ORDER BY slug;

\echo === Forced change of the password
SELECT pg_temp.login('ada', 'ada', 'temporary for ada');
SELECT pg_temp.decode64(split_part(access, '.', 2))::jsonb->'scope' FROM token WHERE name = 'ada';
SELECT pg_temp.call('ada', 'GET', '/auth/me');
SELECT pg_temp.call('ada', 'PATCH', '/auth/me', '{"profile": {}}');
SELECT pg_temp.call('ada', 'POST', '/manage/tenants/' || :'acme' || '/users', '{}');
SELECT pg_temp.refresh('ada', 'ada');
SELECT pg_temp.call('ada', 'GET', '/auth/me');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"currentPassword": "wrong", "newPassword": "a phrase of her own"}');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"currentPassword": "temporary for ada", "newPassword": "temporary for ada"}');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"currentPassword": "temporary for ada", "newPassword": "short"}');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"currentPassword": "temporary for ada", "newPassword": "' || repeat('x', 129) || '"}');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"currentPassword": "temporary for ada", "newPassword": "qwertyUIOP12"}');
SELECT pg_temp.call('ada', 'POST', '/auth/change-password', '{"newPassword": "a phrase of her own"}');
INSERT INTO token SELECT 'old', access, refresh FROM token WHERE name = 'ada';
SELECT pg_temp.pair('ada', '/auth/change-password', '{"currentPassword": "temporary for ada", "newPassword": "a phrase of her own"}', 'ada');
SELECT pg_temp.call('ada', 'GET', '/auth/me');
SELECT pg_temp.call('old', 'GET', '/auth/me');
SELECT pg_temp.refresh('old', 'old');
SELECT pg_temp.login('none', 'ada', 'temporary for ada');
SELECT pg_temp.login('bob', 'bob', :'word');

\echo === Users
SELECT '/manage/tenants/' || :'acme' || '/users' AS users, '/manage/tenants/' || :'beta' || '/users' AS others \gset
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "Ümit", "roles": ["Accountant", "Viewer", "Accountant"],
	"email": "uemit@acme.example", "profile": {"name": "Ümit", "tags": [1, 2.50, null]},
	"securityAttributes": {"department": "IT", "regions": ["EU", "US"], "level": 3, "rate": 0.5, "external": false},
	"temporaryPassword": "temporary for uemit"}');
SELECT headers->>'location' = :'users' || '/' || (body->>'id') FROM answer;
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "cleo"}');
SELECT body->>'temporaryPassword' AS word FROM answer \gset
SELECT pg_temp.login('none', 'cleo', :'word');
-- the same name: other case, decomposed, spaces around it
SELECT pg_temp.call('ada', 'POST', :'users', json_build_object('username', U&' U\0308MIT ')::text);
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "a\u0007b"}');
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "ad\u200ba"}');
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "' || repeat('x', 129) || '"}');
SELECT pg_temp.call('ada', 'POST', :'users', '{"email": "x@y.example", "isSuperAdmin": true, "roles": "Viewer"}');
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "dan", "email": "a@b@c",
	"roles": ["Viewer", "viewer", "SuperAdmin", "TENANT_ADMIN", "tenant-admin", "Super Admin", 1],
	"securityAttributes": {"department": "Ops", "regions": ["EU", "XX"], "level": 1.5, "rate": "1", "external": null, "clearance": 1},
	"profile": {"n": 1e131071}, "temporaryPassword": "dandandandan"}');
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "dandandandan", "temporaryPassword": "DanDanDanDan"}');
SELECT pg_temp.call('ada', 'POST', :'users', json_build_object('username', 'dan', 'profile', json_build_object('x', repeat('y', 4096)))::text);
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "dan", "profile": {"x": [' || repeat('1e300,', 20) || '1]}}');
SELECT pg_temp.call('ada', 'POST', :'others', '{"username": "eve"}');
SELECT pg_temp.call('ada', 'POST', '/manage/tenants/00000000-0000-0000-0000-000000000000/users', '{"username": "eve"}');
SELECT pg_temp.call('ada', 'POST', '/manage/tenants', '{"name": "Eve", "slug": "eve"}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants/00000000-0000-0000-0000-000000000000/users', '{"username": "eve"}');
SELECT pg_temp.call('root', 'POST', '/manage/tenants/x/users', '{"username": "eve"}');
SELECT pg_temp.call('root', 'POST', :'others', '{"username": "eve", "temporaryPassword": "temporary for eve"}');

\echo === Roles
SELECT pg_temp.login('uemit', U&'\00FCmit', 'temporary for uemit') LIKE '%"forcePasswordChange":true%';
SELECT pg_temp.pair('uemit', '/auth/change-password', '{"currentPassword": "temporary for uemit", "newPassword": "uemit has another one"}', 'uemit');
SELECT pg_temp.call('uemit', 'GET', '/auth/me');
SELECT pg_temp.call('uemit', 'POST', :'users', '{"username": "frank"}');
SELECT :'users' || '/' || pg_temp.id_of(U&'\00FCmit') || '/roles' AS roles \gset
SELECT pg_temp.call('ada', 'PUT', :'roles', '{"roles": ["Viewer"]}');
SELECT (pg_temp.call('uemit', 'GET', '/auth/me')::text) LIKE '%"roles":["Viewer"]%';
SELECT pg_temp.call('ada', 'PUT', :'roles', '{"roles": []}');
SELECT pg_temp.call('ada', 'PUT', :'roles', '{"roles": ["Auditor", "super_admin", null]}');
SELECT pg_temp.call('ada', 'PUT', :'roles', '{"roles": null, "x": 1}');
SELECT pg_temp.call('ada', 'PUT', :'roles', '{}');
SELECT pg_temp.call('uemit', 'PUT', :'roles', '{"roles": ["Accountant"]}');
SELECT pg_temp.call('ada', 'PUT', :'users' || '/' || pg_temp.id_of('eve') || '/roles', '{"roles": ["Viewer"]}');
SELECT pg_temp.call('ada', 'PUT', :'users' || '/' || pg_temp.id_of('root') || '/roles', '{"roles": ["Viewer"]}');
SELECT pg_temp.call('ada', 'PUT', :'users' || '/x/roles', '{"roles": ["Viewer"]}');
SELECT pg_temp.call('root', 'PUT', :'roles', '{"roles": ["Accountant"]}') LIKE '200 %';

\echo === Own profile
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', '{"profile": {"name": null, "zone": {"tz": "UTC", "dst": null}, "isSuperAdmin": true}}');
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', '{"profile": {"zone": {"tz": null, "a~/b": []}, "tags": {}}}');
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', '{"profile": {}, "roles": ["Viewer"], "isSuperAdmin": true, "tenantId": null}');
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', '{"profile": [1]}');
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', '{}');
SELECT pg_temp.call('uemit', 'PATCH', '/auth/me', json_build_object('profile', json_build_object('x', repeat('y', 4096)))::text);
-- a token holds what fits, and works
SELECT length(pg_temp.call('uemit', 'PATCH', '/auth/me', json_build_object('profile', json_build_object('x', repeat(E'\u0001', 640)))::text));
UPDATE entityapi.account SET security_attributes = jsonb_build_object('department', repeat('x', 4000))
WHERE id = pg_temp.id_of(U&'\00FCmit');
SELECT pg_temp.login('uemit', U&'\00DCMIT', 'uemit has another one');
SELECT length(access) <= 8192, pg_temp.decode64(split_part(access, '.', 2))::jsonb ? 'profile',
	pg_temp.decode64(split_part(access, '.', 2))::jsonb ? 'securityAttributes' FROM token WHERE name = 'uemit';
SELECT length(pg_temp.call('uemit', 'GET', '/auth/me'));
UPDATE entityapi.account SET security_attributes = '{}', profile = '{}' WHERE id = pg_temp.id_of(U&'\00FCmit');

\echo === Refresh: an old token gets its successor again, until that is used, and then ends the session
SELECT set_config('entityapi.clock', now()::text, false) IS NOT NULL;
SELECT pg_temp.login('u1', U&'\00FCmit', 'uemit has another one');
SELECT pg_temp.refresh('u2', 'u1');
SELECT pg_temp.call('u1', 'GET', '/auth/me') LIKE '200 %', pg_temp.call('u2', 'GET', '/auth/me') LIKE '200 %';
SELECT pg_temp.refresh('again', 'u1');
SELECT count(DISTINCT refresh) = 1 AS same, count(DISTINCT access) = 2 AS others, bool_and(answer LIKE '200 %') AS good
FROM token, LATERAL pg_temp.call(name, 'GET', '/auth/me') answer WHERE name IN ('u2', 'again');
SELECT pg_temp.refresh('u2', 'u2');
SELECT pg_temp.refresh('none', 'u1');
SELECT headers->>'www-authenticate' FROM answer;
SELECT pg_temp.call('u1', 'GET', '/auth/me');
SELECT pg_temp.call('u2', 'GET', '/auth/me');
SELECT pg_temp.refresh('none', 'u2');
RESET entityapi.clock;
SELECT pg_temp.call('uemit', 'GET', '/auth/me') LIKE '200 %' AS other_session_lives;
SELECT pg_temp.call(NULL, 'POST', '/auth/refresh', json_build_object('refreshToken', t)::text)
FROM token, LATERAL (VALUES (access), (''), ('ear_'), (left(refresh, -1) || '!'),
	('eap' || substr(refresh, 4)), (overlay(refresh PLACING 'AAA' FROM 40)), (refresh || 'x')) AS v(t)
WHERE name = 'uemit';
SELECT pg_temp.call(NULL, 'POST', '/auth/refresh', '{}');

\echo === Logout
SELECT pg_temp.login('u3', U&'\00FCmit', 'uemit has another one') IS NOT NULL;
SELECT pg_temp.login('u4', U&'\00FCmit', 'uemit has another one') IS NOT NULL;
SELECT pg_temp.call(NULL, 'POST', '/auth/logout', json_build_object('refreshToken', refresh)::text) FROM token WHERE name = 'u3';
SELECT pg_temp.call('u3', 'GET', '/auth/me');
SELECT pg_temp.refresh('none', 'u3');
SELECT pg_temp.call('u4', 'GET', '/auth/me') LIKE '200 %';
SELECT pg_temp.call('u4', 'POST', '/auth/logout');
SELECT pg_temp.call('u4', 'GET', '/auth/me');
SELECT pg_temp.call('u4', 'POST', '/auth/logout');
SELECT pg_temp.call(NULL, 'POST', '/auth/logout', '{"refreshToken": "garbage"}');
SELECT pg_temp.call(NULL, 'POST', '/auth/logout', '{}');
SELECT body, left(pg_temp.call(NULL, 'POST', '/auth/logout', body), 3) FROM (VALUES ('{"token": "x"}'), ('{"refreshToken": 1}'), ('{"refreshToken": null, "a": {}}'),
	('[]'), ('null'), ('"x"'), ('1'), ('{"refreshToken"}'), ('x'), (' ')) v(body);

\echo === Users and tenants that are not active
UPDATE entityapi.account SET status = 'DISABLED' WHERE id = pg_temp.id_of(U&'\00FCmit');
SELECT pg_temp.call('uemit', 'GET', '/auth/me');
SELECT pg_temp.refresh('none', 'uemit');
SELECT pg_temp.login('none', U&'\00FCmit', 'uemit has another one');
UPDATE entityapi.account SET status = 'ACTIVE' WHERE id = pg_temp.id_of(U&'\00FCmit');
SELECT pg_temp.call('uemit', 'GET', '/auth/me') LIKE '200 %';
UPDATE entityapi.tenant SET status = 'SUSPENDED' WHERE slug = 'acme';
SELECT pg_temp.call('uemit', 'GET', '/auth/me');
SELECT pg_temp.refresh('none', 'uemit');
SELECT pg_temp.login('none', 'ada', 'a phrase of her own');
UPDATE entityapi.tenant SET status = 'ACTIVE' WHERE slug = 'acme';
SELECT pg_temp.call('ada', 'GET', '/auth/me') LIKE '200 %';
DELETE FROM entityapi.tenant_admin WHERE account_id = pg_temp.id_of('ada');
SELECT pg_temp.call('ada', 'POST', :'users', '{"username": "frank"}');

\echo === Signing keys
SELECT kid AS old_kid FROM entityapi.signing_key \gset
SELECT entityapi.rotate_signing_key() <> :'old_kid';
SELECT pg_temp.call('uemit', 'GET', '/auth/me') LIKE '200 %';
SELECT pg_temp.refresh('new', 'uemit');
SELECT pg_temp.decode64(split_part(access, '.', 1))::jsonb->>'kid' <> :'old_kid' FROM token WHERE name = 'new';
UPDATE entityapi.signing_key SET state = 'REVOKED' WHERE kid = :'old_kid';
SELECT pg_temp.call('uemit', 'GET', '/auth/me');
SELECT pg_temp.call('new', 'GET', '/auth/me') LIKE '200 %';
-- a rotation that is rolled back leaves nothing behind
BEGIN;
SELECT entityapi.rotate_signing_key() IS NOT NULL;
SELECT pg_temp.login('lost', U&'\00FCmit', 'uemit has another one') IS NOT NULL;
ROLLBACK;
SELECT pg_temp.call('new', 'GET', '/auth/me') LIKE '200 %';
SELECT count(*) FROM entityapi.signing_key;

\echo === Time
SET entityapi.clock = '2040-01-01 00:00:00Z';
SELECT pg_temp.login('t', U&'\00FCmit', 'uemit has another one');
SET entityapi.clock = '2040-01-01 00:14:59Z';
SELECT pg_temp.call('t', 'GET', '/auth/me') LIKE '200 %';
SET entityapi.clock = '2040-01-01 00:15:00Z';
SELECT pg_temp.call('t', 'GET', '/auth/me');
SET entityapi.clock = '2040-01-08 00:00:00Z';
SELECT pg_temp.refresh('none', 't');
SET entityapi.clock = '2040-01-07 23:59:59Z';
SELECT pg_temp.refresh('t', 't');
SELECT pg_temp.call('t', 'GET', '/auth/me') LIKE '200 %';
SET entityapi.clock = '2040-01-14 00:00:00Z';
SELECT pg_temp.refresh('t', 't') LIKE '200 %';
SET entityapi.clock = '2040-01-20 00:00:00Z';
SELECT pg_temp.refresh('t', 't') LIKE '200 %';
SET entityapi.clock = '2040-01-26 00:00:00Z';
SELECT pg_temp.refresh('t', 't') LIKE '200 %';
SET entityapi.clock = '2040-01-31 00:00:01Z';
SELECT pg_temp.refresh('none', 't');
RESET entityapi.clock;
-- the cost of a hash follows the setting
SET entityapi.bcrypt_cost = 11;
SELECT pg_temp.login('t', 'root', 'first pass phrase') LIKE '200 %';
SELECT left(password_hash, 7) FROM entityapi.account WHERE username = 'Root';

\echo === What is stored
-- the checksum of a secret, worked out bit by bit
CREATE FUNCTION pg_temp.checksum(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	crc bigint := 4294967295;
	digits text := '';
BEGIN
	FOR i IN 1 .. length(t) LOOP
		crc := crc # ascii(substr(t, i, 1));
		FOR bit IN 1 .. 8 LOOP
			crc := crc >> 1 # CASE WHEN crc & 1 = 1 THEN 3988292384 ELSE 0 END;
		END LOOP;
	END LOOP;
	crc := crc # 4294967295;
	FOR i IN 1 .. 6 LOOP
		digits := substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
			(crc % 62)::int + 1, 1) || digits;
		crc := crc / 62;
	END LOOP;
	RETURN digits;
END
$$;
SELECT bool_and(right(refresh, 6) = pg_temp.checksum(left(refresh, -6))) FROM token;
SELECT count(*) > 0, bool_and(length(secret_hash) = 32) FROM entityapi.refresh_token;
SELECT count(*) FROM token t JOIN entityapi.refresh_token r
	ON position(r.secret_hash IN convert_to(t.refresh, 'UTF8')) > 0;
SELECT has_table_privilege('entityapi_client', c.oid, 'SELECT') OR has_table_privilege('entityapi_reader', c.oid, 'SELECT'), count(*)
FROM pg_class c WHERE relnamespace = 'entityapi'::regnamespace
	AND relname IN ('tenant', 'account', 'tenant_admin', 'session', 'refresh_token', 'signing_key', 'common_password')
GROUP BY 1;
SELECT has_function_privilege('entityapi_client', 'entityapi.create_superadmin(text, text)', 'EXECUTE'),
	has_function_privilege('entityapi_client', 'entityapi.rotate_signing_key()', 'EXECUTE');

-- clean up
DELETE FROM entityapi.tenant;
DELETE FROM entityapi.account;
DELETE FROM entityapi.signing_key;
SELECT count(*) FROM entityapi.session;
SELECT count(*) >= 0 FROM entityapi.apply_manifest('[]');
