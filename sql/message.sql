-- handle() as the shim calls it: one message each way (extension/entry/message.h).
CREATE FUNCTION pg_temp.send(message text) RETURNS text
LANGUAGE sql AS $$
	SELECT replace(convert_from(entityapi.handle(convert_to(message, 'UTF8')), 'UTF8'), E'\r', '<CR>')
$$;

SELECT pg_temp.send(E'GET /actuator/health/liveness -\nx-request-id: r-1\n\n');

-- names in their usual spelling, notes for the shim before them
SELECT pg_temp.send(E'GET /auth/me 127.0.0.1\nx-request-id: r-2\n\n');

-- a header sent twice
SELECT pg_temp.send(E'GET /auth/me 127.0.0.1\nx-request-id: r-3\nauthorization: Bearer a\nauthorization: Bearer b\n\n');

-- a body with anything in it; none at all
SELECT pg_temp.send(E'POST /auth/login 127.0.0.1\nx-request-id: r-4\ncontent-type: application/json\n\n{"a":\n\n"b"}');
SELECT pg_temp.send(E'POST /auth/login 127.0.0.1\nx-request-id: r-5\ncontent-type: application/json\n\n');

-- the same as from the arguments
SELECT target, status,
	m LIKE status || E'\n%' AND right(m, length(answer) + 6) = E'\n<CR>\n' || answer AS same
FROM (VALUES ('GET', '/', '', ''), ('GET', '/api/v1/nothing', '', ''), ('BREW', '/auth/me', '', ''),
	('GET', '/auth/me', E'x-api-key: eap_1\n', ''), ('GET', '/auth/%zz', '', ''),
	('POST', '/auth/refresh', E'content-type: application/json\n', '{"refreshToken": "ear_1"}'))
	a(method, target, sent, content),
	entityapi.handle(method, target,
		jsonb_build_object('x-request-id', 'r') || coalesce((
			SELECT jsonb_object(array_agg(split_part(line, ': ', 1)), array_agg(split_part(line, ': ', 2)))
			FROM string_to_table(rtrim(sent, E'\n'), E'\n') line), '{}'),
		convert_to(content, 'UTF8'), NULL) h(status, answered, answer),
	pg_temp.send(format(E'%s %s -\nx-request-id: r\n%s\n%s', method, target, sent, content)) m;

-- no messages
SELECT pg_temp.send('');
SELECT pg_temp.send(E'\n');
SELECT pg_temp.send(E'\n\n');
SELECT pg_temp.send(E'GET\n\n');
SELECT pg_temp.send(E'GET /\n\n');
SELECT pg_temp.send(E'GET / -');
SELECT pg_temp.send(E'GET / -\n');
SELECT pg_temp.send(E'GET / - -\n\n');
SELECT pg_temp.send(E'GET / nowhere\n\n');
SELECT pg_temp.send(E'GET / -\nname\n\n');
SELECT pg_temp.send(E'GET / -\nname:value\n\n');
SELECT entityapi.handle(convert_to(E'GET / -\nname: ', 'UTF8') || '\x000a0a'::bytea);
SELECT entityapi.handle(convert_to(E'GET / -\nname: ', 'UTF8') || '\xff0a0a'::bytea);
SELECT entityapi.handle(NULL::bytea) IS NULL AS nothing;

-- whose search path and whose rights: the owner's, and only meanwhile
CREATE ROLE message_sender LOGIN IN ROLE entityapi_client;
CREATE SCHEMA message_evil;
CREATE FUNCTION message_evil.evil(text, text) RETURNS boolean
LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil as %', current_user; RETURN false; END $$;
CREATE OPERATOR message_evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = message_evil.evil);
GRANT USAGE ON SCHEMA message_evil TO PUBLIC;
SET ROLE message_sender;
SET search_path = message_evil, pg_catalog;
SELECT left(pg_catalog.convert_from(entityapi.handle(pg_catalog.convert_to(
	E'POST /auth/login 127.0.0.1\nx-request-id: r\ncontent-type: application/json\n\n{"username": "nobody", "password": "nothing at all"}',
	'UTF8')), 'UTF8'), 3);
SHOW search_path;
SELECT current_user;
SELECT entityapi.handle('GET'::bytea);
SHOW search_path;
SELECT current_user;
SELECT count(*) FROM entityapi.account;
BEGIN;
SAVEPOINT before;
SELECT entityapi.handle('GET'::bytea);
ROLLBACK TO before;
SHOW search_path;
SELECT current_user;
COMMIT;
RESET ROLE;
RESET search_path;
DROP SCHEMA message_evil CASCADE;
DROP ROLE message_sender;
