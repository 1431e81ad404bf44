-- A credential validator for HS256 tokens of another issuer, as docs/security.md
-- shows it
SET client_min_messages = warning;
CREATE SCHEMA issuer;
GRANT USAGE ON SCHEMA issuer TO entityapi_owner;
CREATE TABLE issuer.secret (secret bytea NOT NULL);
INSERT INTO issuer.secret VALUES ('the secret we share with the issuer');

CREATE FUNCTION issuer.from_base64url(part text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog AS $$
	SELECT decode(rpad(translate(part, '-_', '+/'), (length(part) + 3) / 4 * 4, '='), 'base64')
$$;

CREATE FUNCTION issuer.validate(request jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	parts text[] := regexp_match(request->'headers'->>'authorization',
		'^Bearer ([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$');
	claims jsonb;
BEGIN
	IF parts IS NULL OR
		convert_from(issuer.from_base64url(parts[1]), 'UTF8')::jsonb->>'alg' IS DISTINCT FROM 'HS256' OR
		issuer.from_base64url(parts[3]) <> public.hmac((parts[1] || '.' || parts[2])::bytea,
			(SELECT secret FROM issuer.secret), 'sha256') THEN
		RETURN '{"reject": "no token of ours"}';
	END IF;
	claims := convert_from(issuer.from_base64url(parts[2]), 'UTF8')::jsonb;
	IF (claims->>'exp')::numeric IS NULL OR
		(claims->>'exp')::numeric <= extract(epoch FROM clock_timestamp()) THEN
		RETURN '{"reject": "expired"}';
	END IF;
	RETURN jsonb_build_object('principal', jsonb_build_object(
		'userId', claims->>'sub', 'tenantId', claims->>'tenant',
		'kind', 'USER', 'roles', coalesce(claims->'roles', '[]'),
		'securityAttributes', coalesce(claims->'attributes', '{}')));
END $$;

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "validator_test"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Clerk": null}}},
	{"apiVersion": "entityapi/v1", "kind": "SecurityAttributes", "metadata": {"name": "attributes"}, "spec": {"attributes": {"region": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "SameRegion"}, "spec": {"expression": "#record.region == #user.securityAttributes[''region'']"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Shop"}, "spec": {"permissions": {"Clerk": ["read", "create"]}, "policies": {"SameRegion": ["read"]}, "fields": {
		"region": {"type": "string"}}}}
]');
INSERT INTO validator_test.shop (tenant_id, id, region, created_at, updated_at)
SELECT t::uuid, gen_random_uuid(), r, now(), now()
FROM unnest('{00000000-0000-0000-0000-00000000000a,00000000-0000-0000-0000-00000000000b}'::text[]) t, unnest('{north,south}'::text[]) r;

CREATE FUNCTION pg_temp.base64url(data bytea) RETURNS text LANGUAGE sql AS $$
	SELECT translate(replace(encode(data, 'base64'), E'\n', ''), '+/=', '-_')
$$;
CREATE FUNCTION pg_temp.token(claims jsonb, secret text DEFAULT 'the secret we share with the issuer', alg text DEFAULT 'HS256') RETURNS text LANGUAGE sql AS $$
	SELECT head || '.' || pg_temp.base64url(hmac(head::bytea, secret::bytea, 'sha256'))
	FROM (SELECT pg_temp.base64url(format('{"alg": "%s"}', alg)::bytea) || '.' || pg_temp.base64url(claims::text::bytea) AS head) h
$$;
CREATE FUNCTION pg_temp.list(headers jsonb) RETURNS TABLE (status int, said text) LANGUAGE sql AS $$
	SELECT h.status, CASE h.status WHEN 200 THEN (SELECT string_agg(d->'attributes'->>'region', ' ') FROM jsonb_array_elements(h.body::jsonb->'data') d)
		ELSE h.body::jsonb->'errors'->0->>'detail' END
	FROM entityapi.handle('GET', '/api/v1/shops', headers, NULL, '127.0.0.1') h
$$;
CREATE FUNCTION pg_temp.list(claims jsonb, secret text, alg text DEFAULT 'HS256') RETURNS TABLE (status int, said text) LANGUAGE sql AS $$
	SELECT * FROM pg_temp.list(jsonb_build_object('authorization', 'Bearer ' || pg_temp.token(claims, secret, alg)))
$$;

SET entityapi.credential_validator = 'issuer.validate';
\set secret 'the secret we share with the issuer'
SELECT l.* FROM (VALUES
	(1, '{"sub": "ann", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a", "roles": ["Clerk"], "attributes": {"region": "north"}}'::jsonb),
	(2, '{"sub": "bob", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000b", "roles": ["Clerk"], "attributes": {"region": "south"}}'),
	(3, '{"sub": "no role", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a"}'),
	(4, '{"sub": "no attribute", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a", "roles": ["Clerk"]}'),
	(5, '{"sub": "no tenant", "exp": 9999999999, "roles": ["Clerk"]}'),
	(6, '{"sub": "bad tenant", "exp": 9999999999, "tenant": "a", "roles": ["Clerk"]}'),
	(7, '{"sub": "bad roles", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a", "roles": "Clerk"}'),
	(8, '{"exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a"}'),
	(9, '{"sub": "expired", "exp": 1, "tenant": "00000000-0000-0000-0000-00000000000a"}'),
	(10, '{"sub": "raises", "exp": "x", "tenant": "00000000-0000-0000-0000-00000000000a"}')) u (n, claims),
	pg_temp.list(claims, :'secret') l ORDER BY n;
SELECT * FROM pg_temp.list('{"sub": "ann", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a"}', 'another secret');
SELECT * FROM pg_temp.list('{"sub": "ann", "exp": 9999999999, "tenant": "00000000-0000-0000-0000-00000000000a"}', :'secret', 'none');
SELECT * FROM pg_temp.list('{}');
SELECT * FROM pg_temp.list('{"x-api-key": "eap_x"}');
SELECT status FROM entityapi.handle('POST', '/auth/login', '{"content-type": "application/json"}', '{"username": "a", "password": "b"}', '127.0.0.1');
SELECT status FROM entityapi.handle('GET', '/auth/me', '{}', NULL, '127.0.0.1');

-- What it is told of a request: headers that come twice as a list, and a body
-- that is text
CREATE FUNCTION issuer.tell(request jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	RAISE WARNING '%', request;
	RETURN '{"reject": "nobody"}';
END $$;
SET entityapi.credential_validator = 'issuer.tell';
SELECT m, status FROM unnest('{GET,HEAD,DELETE}'::text[]) m,
	entityapi.handle(m, '/api/v1/shops/x?a=b%20c', '{"x-one": "1", "x-two": ["a", "b"]}', NULL, '127.0.0.1');
SELECT m, status FROM (VALUES ('POST', ''), ('PATCH', '/x')) v (m, id),
	entityapi.handle(m, '/api/v1/shops' || id, '{}', convert_to('a "body"', 'UTF8'), '127.0.0.1');
SELECT status FROM entityapi.handle('PUT', '/manage/settings/personal-api-keys', '{}', '\x6100', '127.0.0.1');
SELECT status FROM entityapi.handle('POST', '/api/v1/shops', '{}', '\xff', NULL);

-- One that is not there lets nobody in
SET entityapi.credential_validator = 'issuer.nothing';
SELECT * FROM pg_temp.list('{}');
RESET entityapi.credential_validator;
SELECT status FROM entityapi.handle('GET', '/auth/me', '{}', NULL, '127.0.0.1');

SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
DROP SCHEMA validator_test;
DROP SCHEMA issuer CASCADE;
