-- Policy expressions: how they are understood, what is refused when they are
-- applied, and what a request costs that a policy decides by itself
SET client_min_messages = warning;

-- The tree, or the first fault and its position
CREATE FUNCTION pg_temp.check(expression text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN entityapi.check_expression(expression);
EXCEPTION WHEN syntax_error THEN
	RETURN SQLERRM;
END $$;
SELECT expression, pg_temp.check(expression) FROM (VALUES
	(1, 'true'), (2, '#user.superAdmin'), (3, '#record.a == 1 or #record.b eq ''x'' && !#record.c'),
	(4, '(#record.a == 1 || #record.b == 2) and not #record.c'), (5, '#record.a in {1, -2.5}'),
	(6, '#user.roles.contains(''A'')'), (7, '#record.a.b.startsWith(''it''''s'')'),
	(8, '#user.securityAttributes[''x''] != null'), (9, '#now > #record.at'), (10, '#record.contains == 1'),
	(11, ''), (12, '#record'), (13, '#record.'), (14, '#user.getClass()'), (15, 'T(java.lang.Runtime).getRuntime()'),
	(16, '#record.a = 1'), (17, '#record.a == '), (18, '#record.a == 1 1'), (19, '(true'), (20, '{}'), (21, '#record.a in {1,}'),
	(22, '''open'), (23, '#user.profile[x]'), (24, '#entity.a == 1'), (25, 'new Object()'), (26, '@bean.x'), (27, '#record.a == 1; true'),
	(28, '#record.a.b.c.d.e.f.g == 1'), (29, '1e5 == 1'), (30, 'True'), (31, '#record.ä == 1'), (32, '''ä'' == #record.a b')) u (n, expression)
ORDER BY n;
SELECT n, left(pg_temp.check(repeat('(', n) || 'true' || repeat(')', n)), 60) AS parentheses FROM unnest(ARRAY[32, 33, 100000]) n;
SELECT n, left(pg_temp.check(repeat('!', n) || 'true'), 60) AS negations FROM unnest(ARRAY[32, 33]) n;
SELECT n, left(pg_temp.check('true' || repeat(' or true', n)), 60) AS nodes FROM unnest(ARRAY[254, 255, 100000]) n;

-- Faults when applied
CREATE FUNCTION pg_temp.apply(expression text, operations jsonb DEFAULT '["read"]', spec jsonb DEFAULT '{}') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM entityapi.apply_manifest(jsonb_build_array(
		'{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "policies_test", "tenancy": "SINGLE"}}'::jsonb,
		'{"apiVersion": "entityapi/v1", "kind": "SecurityAttributes", "metadata": {"name": "attributes"}, "spec": {"attributes": {"text": {"type": "string"}, "number": {"type": "integer"}, "words": {"type": "string[]"}}}}'::jsonb,
		jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Policy', 'metadata', '{"name": "P"}'::jsonb, 'spec', jsonb_build_object('expression', expression)),
		jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity', 'metadata', '{"name": "Thing"}'::jsonb, 'spec', jsonb_build_object(
			'permissions', '{"*": ["create", "read", "update", "delete"]}'::jsonb, 'policies', jsonb_build_object('P', operations), 'fields', '{
			"text": {"type": "string"}, "number": {"type": "integer", "index": true}, "price": {"type": "decimal"}, "flag": {"type": "boolean"}, "day": {"type": "date"},
			"at": {"type": "datetime"}, "token": {"type": "uuid"}, "extra": {"type": "json"}, "parent": {"type": "ref", "target": "Thing", "relation": "ManyToOne"},
			"children": {"type": "ref", "target": "Thing", "relation": "OneToMany", "mappedBy": "parent"}}'::jsonb) || spec)), true);
	RETURN NEXT 'fine';
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN QUERY SELECT format('%s %s: %s (%s)', f->>'document', f->>'pointer', f->>'message', f->>'hint')
				 FROM jsonb_array_elements(detail::jsonb) f;
END $$;
SELECT expression, f FROM (VALUES
	(1, '#record.txt == ''a'''), (2, '#record.number == ''5'''), (3, '#record.text == 5'), (4, '#record.text == #record.token'),
	(5, '#user.securityAttributes[''txt''] == ''a'''), (6, '#user.securityAttributes[''number''] == #record.text'), (7, '#user.name == ''a'''),
	(8, '#user.securityAttributes == ''a'''), (9, '#record.extra == ''a'''), (10, '#record.extra != null'), (11, '#record.flag < true'),
	(12, '#record.day < #now'), (13, '#record.at < #now'), (14, '#record.token == ''x'''), (15, '#record.token == #user.userId'),
	(16, '#record.day == ''2026-02-30'''), (17, '#record.text'), (18, 'not #record.flag'), (19, '#record.number in {''a''}'),
	(20, '#record.text in #user.roles'), (21, '#record.number in #user.roles'), (22, '#record.text in #record.text'),
	(23, '#record.children == null'), (24, '#record.children.text == ''a'''), (25, '#record.text.number == 1'), (26, '#input.text == ''a'''),
	(27, '#record.number.contains(''a'')'), (28, '#record.text.contains(1)'), (29, '#record.text < null'), (30, 'null == null'),
	(31, '#record.text == {''a''}'), (32, '#user.profile[''x''] == #record.number'), (33, '#record.parent.text == ''a'''), (34, '#user.roles.startsWith(''a'')')) u (n, expression),
	pg_temp.apply(expression) f ORDER BY n;
SELECT pg_temp.apply('#record.text == ''a''', '["create"]');
SELECT pg_temp.apply('#input.text == ''a''', '["create", "update"]');
SELECT pg_temp.apply('#input.text == ''a''', '["delete"]');
SELECT pg_temp.apply('#input.id == #user.userId', '["create"]');

-- #row is the one or the other, by the operation
SELECT pg_temp.check('#row.a.b == 1 and #row.c != null');
SELECT pg_temp.apply('#row.text == ''a'' and (#row.parent.text == ''b'' or #row.number == null)', '["create", "update", "delete"]');
SELECT pg_temp.apply('#row.text == ''a''', '["create", "read", "update", "delete"]');
SELECT pg_temp.apply('#row.id == #user.userId', '["read", "update", "delete"]');
SELECT pg_temp.apply('#row.id == #user.userId', '["create"]');
SELECT pg_temp.apply('#row.texts == ''a''', '["read"]');
SELECT pg_temp.apply('#row', '["read"]');
SELECT pg_temp.apply('#record.parent.text == ''a''', '["update", "delete"]');

-- What the caller decides by himself is decided before a row is looked at; the
-- rest is a condition that an index serves
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "policies_test"}},
	{"apiVersion": "entityapi/v1", "kind": "SecurityAttributes", "metadata": {"name": "attributes"}, "spec": {"attributes": {"level": {"type": "integer"}, "all": {"type": "boolean"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "P"}, "spec": {"expression": "#user.roles.contains(''boss'') or (#user.kind == ''USER'' and #record.level == #user.securityAttributes[''level''])"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Thing"}, "spec": {"permissions": {"*": ["read"]}, "policies": {"P": ["read"]}, "fields": {"level": {"type": "integer", "index": true}}}}
]');
INSERT INTO policies_test.thing (tenant_id, id, level, created_at, updated_at)
SELECT '00000000-0000-0000-0000-00000000000a', lpad(n::text, 32, '0')::uuid, n % 500, now(), now() FROM generate_series(1, 5000) n;
ANALYZE policies_test.thing;
CREATE FUNCTION pg_temp.explain(more jsonb) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT regexp_replace(line, ' +\(cost=.*', '') FROM entityapi.explain('GET', '/api/v1/things?page[totals]=false&page[size]=3&fields[things]=level',
		'{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000a"}'::jsonb || more) line
$$;
SELECT pg_temp.explain('{"securityAttributes": {"level": 7}}');
SELECT pg_temp.explain('{"securityAttributes": {"level": "7"}}');
SELECT pg_temp.explain('{"kind": "SERVICE_ACCOUNT", "securityAttributes": {"level": 7}}');
SELECT pg_temp.explain('{"roles": ["boss"]}');
SELECT line FROM pg_temp.explain('{"roles": ["boss"], "securityAttributes": {"level": 7}}') line WHERE line ~ '^(SELECT|answer)';
SELECT line FROM entityapi.explain('GET', '/api/v1/nothing', '{"userId": "u", "tenantId": "00000000-0000-0000-0000-00000000000a"}') line WHERE line ~ '^answer';
SELECT entityapi.explain('GET', '/api/v1/things', '{"userId": "u"}');

SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
DROP SCHEMA policies_test;
