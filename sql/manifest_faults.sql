-- What is wrong with manifests: all of it at once, each with its place

CREATE FUNCTION pg_temp.faults(documents jsonb)
RETURNS TABLE (document text, pointer text, message text, hint text)
LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM entityapi.apply_manifest(documents, true);
	RETURN QUERY SELECT '', '', 'no fault', NULL::text;
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN QUERY SELECT f->>'document', f->>'pointer', f->>'message', f->>'hint'
				 FROM jsonb_array_elements(detail::jsonb) f;
END
$$;

CREATE FUNCTION pg_temp.document(kind text, name text, spec jsonb)
RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', kind,
							  'metadata', jsonb_build_object('name', name),
							  'spec', spec)
$$;

-- Ten faults in one call are ten

\set VERBOSITY terse
SELECT entityapi.apply_manifest('[
	{"source": "a.yaml#1", "apiVersion": "entityapi/v2", "kind": "Entity", "metadata": {"name": "Order"},
	 "spec": {"field": {}, "fields": {
		"id": {"type": "string"},
		"total": {"type": "decimel"},
		"state": {"type": "string", "enum": ["A", "A"]},
		"buyer": {"type": "ref", "target": "Byer"},
		"due": {"type": "date", "maxLength": 3}}}},
	{"source": "a.yaml#2", "apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"},
	 "spec": {"roles": {"Super_Admin": {}}}},
	{"source": "b.yaml#1", "apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Buyer"},
	 "spec": {"fields": {"name": {"type": "string", "required": "yes"}}, "permissions": {"Clerk": ["read"]}}}]');
\set VERBOSITY default
SELECT document, pointer, message, hint FROM pg_temp.faults('[
	{"source": "a.yaml#1", "apiVersion": "entityapi/v2", "kind": "Entity", "metadata": {"name": "Order"},
	 "spec": {"field": {}, "fields": {
		"id": {"type": "string"},
		"total": {"type": "decimel"},
		"state": {"type": "string", "enum": ["A", "A"]},
		"buyer": {"type": "ref", "target": "Byer"},
		"due": {"type": "date", "maxLength": 3}}}},
	{"source": "a.yaml#2", "apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"},
	 "spec": {"roles": {"Super_Admin": {}}}},
	{"source": "b.yaml#1", "apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Buyer"},
	 "spec": {"fields": {"name": {"type": "string", "required": "yes"}}, "permissions": {"Clerk": ["read"]}}}]');
SELECT count(*) FROM entityapi.entity;

-- Documents as such

SELECT c.input, f.document, f.pointer, f.message, f.hint
FROM (VALUES
	(1, '1'::jsonb), (2, '"x"'), (3, '[null]'), (4, '{}'),
	(5, '{"apiVersion": "entityapi/v1", "kind": "Entitty", "metadata": {"name": "A"}, "spec": {}}'),
	(6, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": ""}, "spec": {"fields": {}}}'),
	(7, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Line_Item"}, "spec": {"fields": {}}}'),
	(8, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "1st"}, "spec": {"fields": {}}}'),
	(9, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "A", "label": 1}, "spec": []}'),
	(10, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "A"}, "specs": {"fields": {}}}'),
	(11, '[{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "A"}, "spec": {"fields": {}}, "source": "x#1"},
	       {"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "A"}, "spec": {"fields": {}}, "source": "x#2"}]'),
	(12, '{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "A"}, "spec": {}}')
) c (n, input), pg_temp.faults(c.input) f ORDER BY c.n;

SELECT pointer, message FROM pg_temp.faults(('[' || repeat('[', 100) || repeat(']', 100) || ']')::jsonb);

-- Single fields of an entity "Item" beside "Other", "World" (of no tenant)
-- and the one-of "Any"

CREATE TEMP TABLE around (document jsonb);
INSERT INTO around VALUES
(pg_temp.document('Roles', 'roles', '{"roles": {"Clerk": null}}')),
(pg_temp.document('Entity', 'World', '{"tenantScoped": false, "fields": {}}')),
(pg_temp.document('OneOf', 'Any', '{"members": ["Item", "Other"]}')),
(pg_temp.document('Entity', 'Other', '{"fields": {
	"title": {"type": "string"},
	"item": {"type": "ref", "target": "Item"},
	"single": {"type": "ref", "target": "Item", "relation": "OneToOne"},
	"many": {"type": "ref", "target": "Item", "relation": "ManyToMany"},
	"self": {"type": "ref", "target": "Other"},
	"any": {"type": "oneof", "target": "Any"}}}'));

CREATE FUNCTION pg_temp.field(name text, field jsonb)
RETURNS TABLE (pointer text, message text, hint text) LANGUAGE sql AS $$
	SELECT f.pointer, f.message, f.hint
	FROM pg_temp.faults((
		SELECT jsonb_agg(document) || pg_temp.document('Entity', 'Item',
			jsonb_build_object('fields', jsonb_build_object(name, field)))
		FROM around)) f
$$;

SELECT c.name, c.field, f.*
FROM (VALUES
	(101, 'a', '{}'::jsonb),
	(102, 'a', '"string"'),
	(103, 'a', '{"type": "String"}'),
	(104, 'a', '{"type": "string", "requird": true}'),
	(105, 'a', '{"type": "string", "required": 1}'),
	(106, 'type', '{"type": "string"}'),
	(107, 'a-b', '{"type": "string"}'),
	(108, '', '{"type": "string"}'),
	(109, 'createdAt', '{"type": "datetime"}'),
	(110, 'tenant', '{"type": "ref", "target": "Other"}'),
	(111, 'a', '{"type": "string", "maxLength": 0}'),
	(112, 'a', '{"type": "string", "maxLength": 1.5}'),
	(113, 'a', '{"type": "string", "maxLength": 99999999999}'),
	(114, 'a', '{"type": "string", "maxLength": 20000000}'),
	(115, 'a', '{"type": "string", "minLength": 9, "maxLength": 8}'),
	(116, 'a', '{"type": "string", "minLength": -1}'),
	(117, 'a', '{"type": "string", "pattern": "("}'),
	(118, 'a', '{"type": "string", "pattern": "^a$", "default": "b"}'),
	(119, 'a', '{"type": "string", "default": 5}'),
	(120, 'a', '{"type": "string", "default": null}'),
	(121, 'a', '{"type": "string", "maxLength": 2, "default": "abc"}'),
	(122, 'a', '{"type": "string", "enum": []}'),
	(123, 'a', '{"type": "string", "enum": ["x", 1]}'),
	(124, 'a', '{"type": "string", "enum": ["x"], "default": "y"}'),
	(125, 'a', '{"type": "string", "enum": ["xyz"], "maxLength": 2}'),
	(126, 'a', '{"type": "string", "minimum": "a"}'),
	(127, 'a', '{"type": "string", "unique": true, "maxLength": 5000}'),
	(128, 'a', '{"type": "text", "index": true}'),
	(129, 'a', '{"type": "json", "unique": true}'),
	(130, 'a', '{"type": "integer", "default": "1"}'),
	(131, 'a', '{"type": "integer", "default": 1.5}'),
	(132, 'a', '{"type": "integer", "maximum": 3000000000}'),
	(133, 'a', '{"type": "integer", "minimum": 5, "maximum": 4}'),
	(134, 'a', '{"type": "integer", "minimum": 5, "default": 4}'),
	(135, 'a', '{"type": "integer", "precision": 4}'),
	(136, 'a', '{"type": "decimal", "precision": 0}'),
	(137, 'a', '{"type": "decimal", "precision": 1001}'),
	(138, 'a', '{"type": "decimal", "precision": 2, "scale": 3}'),
	(139, 'a', '{"type": "decimal", "precision": 4, "scale": 2, "default": 1.234}'),
	(140, 'a', '{"type": "decimal", "precision": 4, "scale": 2, "default": 123}'),
	(141, 'a', '{"type": "decimal", "precision": 4, "scale": 2, "default": 12.3400}'),
	(142, 'a', '{"type": "boolean", "default": "true"}'),
	(143, 'a', '{"type": "boolean", "minimum": false}'),
	(144, 'a', '{"type": "date", "default": "2020-02-30"}'),
	(145, 'a', '{"type": "datetime", "default": "2020-02-03"}'),
	(146, 'a', '{"type": "uuid", "default": "x"}'),
	(147, 'a', '{"type": "string", "readOnly": true, "writeOnce": true}'),
	(148, 'a', '{"type": "string", "readRoles": ["Clark"]}'),
	(149, 'a', '{"type": "string", "writeRoles": ["Clerk", "Clerk"]}'),
	(150, 'a', '{"type": "string", "writeRoles": ["tenant-admin"]}'),
	(151, 'a', '{"type": "string", "since": 2}'),
	(152, 'a', '{"type": "string", "since": 1, "removedIn": 1}'),
	(153, 'a', '{"type": "string", "renamedFrom": "a"}'),
	(154, 'a', '{"type": "string", "target": "Other"}'),
	(155, 'a', '{"type": "json", "minimum": 1, "maximum": 2, "enum": ["x"]}'),
	(201, 'a', '{"type": "ref"}'),
	(202, 'a', '{"type": "ref", "target": "Othr"}'),
	(203, 'a', '{"type": "ref", "target": "Any"}'),
	(204, 'a', '{"type": "ref", "target": "Other", "relation": "manyToOne"}'),
	(205, 'a', '{"type": "ref", "target": "Other", "onDelete": "setNull", "required": true}'),
	(206, 'a', '{"type": "ref", "target": "Other", "mappedBy": "item"}'),
	(207, 'a', '{"type": "ref", "target": "Other", "default": "x"}'),
	(208, 'a', '{"type": "ref", "target": "Other", "unique": true}'),
	(209, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany"}'),
	(210, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "itm"}'),
	(211, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "title"}'),
	(212, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "single"}'),
	(213, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "self"}'),
	(214, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "any"}'),
	(215, 'a', '{"type": "ref", "target": "Other", "relation": "OneToOne", "mappedBy": "any"}'),
	(216, 'a', '{"type": "ref", "target": "Other", "relation": "OneToOne", "mappedBy": "item"}'),
	(217, 'a', '{"type": "ref", "target": "Other", "relation": "OneToOne", "mappedBy": "single"}'),
	(218, 'a', '{"type": "ref", "target": "Other", "relation": "ManyToMany", "mappedBy": "many"}'),
	(219, 'a', '{"type": "ref", "target": "Other", "relation": "ManyToMany", "mappedBy": "item"}'),
	(220, 'a', '{"type": "ref", "target": "Other", "relation": "OneToMany", "mappedBy": "item", "required": true, "onDelete": "cascade"}'),
	(221, 'a', '{"type": "ref", "target": "Other", "relation": "ManyToMany", "onDelete": "cascade"}'),
	(222, 'a', '{"type": "ref", "target": "World"}'),
	(223, 'a', '{"type": "oneof"}'),
	(224, 'a', '{"type": "oneof", "target": "Other"}'),
	(225, 'a', '{"type": "oneof", "target": "Any", "relation": "ManyToOne"}'),
	(226, 'a', '{"type": "oneof", "target": "Any", "required": true, "onDelete": "setNull"}')
) c (n, name, field), pg_temp.field(c.name, c.field) f
ORDER BY c.n;

-- Whole documents beside the same ones, and a plain "Item"

CREATE FUNCTION pg_temp.beside(kind text, name text, spec jsonb)
RETURNS TABLE (document text, pointer text, message text, hint text) LANGUAGE sql AS $$
	SELECT f.*
	FROM pg_temp.faults((
		SELECT jsonb_agg(document) || CASE name WHEN 'Item' THEN '[]' ELSE jsonb_build_array(
				pg_temp.document('Entity', 'Item', '{"fields": {}}')) END
			|| pg_temp.document(kind, name, spec)
		FROM around)) f
$$;

SELECT c.kind, c.name, c.spec, f.pointer, f.message, f.hint
FROM (VALUES
	(301, 'Entity', 'Item', '{"fields": {"a": {"type": "string"}, "A": {"type": "string"}}}'::jsonb),
	(302, 'Entity', 'Item', '{"fields": {"ab": {"type": "uuid"}, "aB": {"type": "uuid"}, "a": {"type": "ref", "target": "Other"}, "aId": {"type": "uuid"}}}'),
	(303, 'Entity', 'Item', '{"fields": {}, "table": "public.x"}'),
	(304, 'Entity', 'Item', '{"fields": {}, "permissions": {"Clerk": ["read", "wrte"], "Nobody": [], "TENANT_ADMIN": ["read"], "*": "read"}}'),
	(305, 'Entity', 'Item', '{"fields": {}, "policies": {"Mine": ["read"]}}'),
	(306, 'Entity', 'Item', '{"fields": {"a": {"type": "json"}, "b": {"type": "uuid"}}, "indexes": [[], ["a"], ["b", "b"], ["c"], "b"]}'),
	(307, 'Entity', 'Item', '{"fields": {}, "since": 3, "removedIn": 2}'),
	(308, 'Entity', 'Item', '{"fields": {}, "plural": "others"}'),
	(309, 'Entity', 'Item', '{"fields": {}, "plural": "line items"}'),
	(310, 'Entity', 'Operation', '{"fields": {}}'),
	(311, 'Entity', 'OTher', '{"fields": {}}'),
	(312, 'Entity', 'Any', '{"fields": {}}'),
	(313, 'Entity', 'OtherMany', '{"fields": {}}'),
	(314, 'Entity', 'Planet', '{"tenantScoped": false, "fields": {"item": {"type": "ref", "target": "Item"}, "any": {"type": "oneof", "target": "Any"}, "all": {"type": "ref", "target": "Item", "relation": "ManyToMany"}}}'),
	(315, 'Entity', 'Item', '{"fields": {"old": {"type": "uuid"}, "new": {"type": "uuid", "renamedFrom": "old"}}}'),
	(316, 'Entity', 'Item', '{"fields": {"one": {"type": "uuid", "renamedFrom": "old"}, "two": {"type": "uuid", "renamedFrom": "old"}}}'),
	(401, 'OneOf', 'Some', '{}'),
	(402, 'OneOf', 'Some', '{"members": ["Item"]}'),
	(403, 'OneOf', 'Some', '{"members": ["Item", "Item"]}'),
	(404, 'OneOf', 'Some', '{"members": ["Item", "Itm"]}'),
	(405, 'OneOf', 'Some', '{"members": ["Item", "World"]}'),
	(406, 'OneOf', 'Some', '{"members": ["Item", 5]}'),
	(501, 'Roles', 'more', '{"roles": {"Clerk": {}, "SUPERADMIN": {}, "tenant.admin": {}, "a b": {}, "Fine": {"description": 5}}}'),
	(502, 'Roles', 'more', '{"roles": ["a"]}'),
	(503, 'Policy', 'mine', '{"expression": ""}'),
	(504, 'Policy', 'mine', '{"expression": "#record.owner == #user.userId"}'),
	(505, 'SecurityAttributes', 'sa', '{"attributes": {"region": {"type": "str"}, "level": {}, "a b": {"type": "string"}}}'),
	(506, 'SecurityAttributes', 'sa', '{"attributes": {"region": {"type": "integer", "allowedValues": [1, 1.5, "x"]}, "team": {"type": "string[]", "allowedValues": []}}}'),
	(507, 'Versions', 'v', '{"versions": {}}'),
	(508, 'Versions', 'v', '{"versions": {"0": {}, "01": {}, "x": {}, "2": {"status": "DEAD"}, "3": {"status": "SUNSET", "sunset": "2027-13-01"}, "4": {"sunset": "2027-01-01"}}}'),
	(509, 'Service', 's', '{"tenancy": "MANY", "schema": "pg_x", "defaultRoles": ["Boss"], "audit": {"all": true}}'),
	(510, 'Service', 's', '{"schema": "My Schema", "tenantAdminBypass": "no", "distribution": "tenants"}'),
	(511, 'Hook', 'h', '{}'),
	(512, 'Hook', 'h', '{"entity": "Itm", "phase": "before", "on": ["create", "read"], "function": "f", "timeoutMs": 0}'),
	(513, 'Hook', 'h', '{"entity": "*", "phase": "after", "on": [], "function": "a.b.c"}'),
	(514, 'Hook', 'h', '{"entity": "*", "phase": "after", "on": ["update"], "function": "app.f", "timeoutMs": 100}')
) c (n, kind, name, spec), pg_temp.beside(c.kind, c.name, c.spec) f
ORDER BY c.n;

SELECT count(*) FROM entityapi.entity;

-- What a deletion only hides takes nothing along that would be gone for good

SELECT document, pointer, message, hint FROM pg_temp.faults(jsonb_build_array(
	pg_temp.document('OneOf', 'Any', '{"members": ["Soft", "Hard"]}'),
	pg_temp.document('Entity', 'Soft', '{"softDelete": true, "fields": {
		"self": {"type": "ref", "target": "Soft", "onDelete": "cascade"},
		"hard": {"type": "ref", "target": "Hard", "onDelete": "cascade"}}}'),
	pg_temp.document('Entity', 'Hard', '{"fields": {
		"kept": {"type": "ref", "target": "Soft", "onDelete": "restrict"},
		"lost": {"type": "ref", "target": "Soft", "onDelete": "cascade"},
		"need": {"type": "ref", "target": "Soft", "relation": "OneToOne", "required": true, "onDelete": "cascade"},
		"any": {"type": "oneof", "target": "Any", "onDelete": "cascade"}}}')));

-- Bringing back is for what is only hidden, and no policy is asked about it

SELECT document, pointer, message, hint FROM pg_temp.faults(jsonb_build_array(
	pg_temp.document('Roles', 'r', '{"roles": {"Clerk": null}}'),
	pg_temp.document('Policy', 'P', '{"expression": "true"}'),
	pg_temp.document('Entity', 'Soft', '{"softDelete": true, "fields": {}, "permissions": {"Clerk": ["restore"]}, "policies": {"P": ["read", "restore"]}}'),
	pg_temp.document('Entity', 'Shared', '{"softDelete": true, "tenantScoped": false, "fields": {}, "permissions": {"Clerk": ["read", "restore"]}}'),
	pg_temp.document('Entity', 'Hard', '{"fields": {}, "permissions": {"Clerk": ["restore"]}}')));

-- What the service keeps of rows, the accounts of a tenant, and what callers
-- bring.
SELECT specs->'spec' AS spec, f.pointer, f.message, f.hint FROM (VALUES
	('{"system": ["createdat"]}'::jsonb),
	('{"system": ["createdAt", "createdAt"]}'),
	('{"system": "createdAt"}'),
	('{"system": ["createdBy"]}'),
	('{"system": ["updatedAt"], "fields": {"updatedAt": {"type": "date"}}}'),
	('{"system": ["createdBy"], "tenantScoped": false}'),
	('{"system": ["createdAt", "createdBy"], "table": "old.t"}'),
	('{"accounts": true}'),
	('{"fields": {"a": {"type": "string", "default": {"caller": "id"}}}}'),
	('{"fields": {"a": {"type": "string", "default": {"caller": "email"}}}}'),
	('{"fields": {"a": {"type": "string", "default": {"caller": "securityAttributes.x"}}}}'),
	('{"fields": {"a": {"type": "date", "default": {"caller": "username"}}}}'),
	('{"fields": {"a": {"type": "text", "default": {"call": "username"}}}}'),
	('{"fields": {"a": {"type": "ref", "target": "Item", "default": {"caller": "id"}}}}'),
	('{"fields": {"a": {"type": "ref", "target": "Item", "mappedBy": "b", "relation": "OneToMany", "default": {"caller": "id"}}}}')
) v (spec), LATERAL (SELECT jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity',
	'metadata', '{"name": "Item"}'::jsonb, 'spec', '{"fields": {}}'::jsonb || v.spec) AS specs) e,
	LATERAL pg_temp.faults(jsonb_build_array(specs)) f;

SELECT specs->'spec' AS spec, f.pointer, f.message, f.hint FROM (VALUES
	('{"fields": {}}'::jsonb),
	('{"accounts": false, "fields": {}}'),
	('{"accounts": true, "softDelete": true}'),
	('{"accounts": true, "permissions": {"*": ["read", "update"]}}'),
	('{"accounts": true, "fields": {"email": {"type": "text"}}}'),
	('{"accounts": true, "fields": {"a": {"type": "text"}}}'),
	('{"accounts": true, "fields": {"a": {"from": "profile.a"}}}'),
	('{"accounts": true, "fields": {"a": {"type": "text", "from": "password"}}}'),
	('{"accounts": true, "fields": {"a": {"type": "text", "from": "profile.a.b"}}}'),
	('{"accounts": true, "fields": {"a": {"type": "ref", "from": "profile.a"}}}'),
	('{"accounts": true, "fields": {"a": {"type": "text", "from": "profile.a", "required": true}}}'),
	('{"accounts": true, "fields": {"createdAt": {"readRoles": []}}}')
) v (spec), LATERAL (SELECT jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity',
	'metadata', '{"name": "User"}'::jsonb, 'spec', v.spec) AS specs) e,
	LATERAL pg_temp.faults(jsonb_build_array(specs)) f;

SELECT document, pointer, message, hint FROM pg_temp.faults(jsonb_build_array(
	pg_temp.document('Entity', 'Hard', '{"purgeAfterDays": 30, "fields": {"restore": {"type": "ref", "target": "Hard"}, "deletionId": {"type": "uuid"}}}'),
	pg_temp.document('Entity', 'Soft', '{"softDelete": true, "purgeAfterDays": 0, "fields": {
		"restore": {"type": "ref", "target": "Hard"}, "deletionId": {"type": "uuid"}}}'),
	pg_temp.document('Entity', 'Long', '{"softDelete": true, "purgeAfterDays": 36501, "fields": {"restore": {"type": "string"}}}')));

-- What PostgreSQL has no room for, in an entry of an index or in a row, and
-- the columns that it has itself

SELECT document, pointer, message, hint FROM pg_temp.faults(jsonb_build_array(
	pg_temp.document('Entity', 'Near', '{"indexes": [["a", "b"], ["a", "c"], ["a", "d", "e", "f"], ["a", "g"], ["h", "i"]], "fields": {
		"a": {"type": "string", "maxLength": 332}, "b": {"type": "text", "maxLength": 332}, "c": {"type": "string", "maxLength": 333},
		"d": {"type": "string", "enum": ["NEW", "OPEN"]}, "e": {"type": "string", "maxLength": 320}, "f": {"type": "datetime"},
		"g": {"type": "decimal", "precision": 1000, "scale": 0}, "h": {"type": "string", "maxLength": 601}, "i": {"type": "string"}}}'),
	pg_temp.document('Entity', 'Shared', '{"tenantScoped": false, "indexes": [["a", "b"], ["a", "c"]], "fields": {
		"a": {"type": "string", "maxLength": 334}, "b": {"type": "string", "maxLength": 334}, "c": {"type": "string", "maxLength": 335}}}'),
	pg_temp.document('Entity', 'Own', '{"fields": {"ctid": {"type": "string"}, "xMin": {"type": "string"}, "xmax": {"type": "string"}, "cmin": {"type": "string"},
		"cmax": {"type": "uuid"}, "tableoid": {"type": "integer"}, "oid": {"type": "integer"}}}'),
	pg_temp.document('Entity', 'Old', '{"table": "old.t", "columns": {"id": "ctid", "tenantId": "tableoid", "a": "xmin"}, "fields": {"a": {"type": "string"}}}')));

SELECT n, required, f.pointer, f.message, f.hint FROM (VALUES (500, true), (510, true), (600, false)) w (n, required),
	LATERAL (SELECT jsonb_build_object('fields', jsonb_object_agg('f' || i, jsonb_build_object('type', 'uuid', 'required', required))) AS spec FROM generate_series(1, n) i) s,
	LATERAL pg_temp.faults(jsonb_build_array(pg_temp.document('Entity', 'Wide', spec))) f;
