-- openapi(): what each version shows, and how attributes become schemas

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

-- nothing declared: version 1, of identity and management alone
SELECT entityapi.openapi()->>'openapi', entityapi.openapi(2) IS NULL;

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "openapi_test"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Clerk": {}}}},
	{"apiVersion": "entityapi/v1", "kind": "Versions", "metadata": {"name": "versions"}, "spec": {"versions": {
		"1": {"status": "SUNSET", "sunset": "2027-01-01"}, "2": {"status": "ACTIVE"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Line"}, "spec": {
		"description": "It says \"what\", and\nhow",
		"permissions": {"Clerk": ["create", "read", "update", "delete"]}, "fields": {
		"itemPart": {"type": "oneof", "target": "Part"},
		"code": {"type": "string", "required": true, "maxLength": 8, "minLength": 2, "pattern": "^[A-Z]+$", "writeOnce": true},
		"word": {"type": "string", "pattern": "^\\w+$", "unique": true},
		"state": {"type": "string", "enum": ["NEW", "OLD"]},
		"kind": {"type": "string", "enum": ["A"], "required": true, "default": "A"},
		"price": {"type": "decimal", "precision": 6, "scale": 2, "minimum": 0.5, "maximum": "900"},
		"pages": {"type": "integer", "minimum": 1, "description": "How many", "readOnly": true},
		"big": {"type": "long"},
		"day": {"type": "date", "minimum": "2020-01-01"},
		"at": {"type": "datetime", "since": 2},
		"old": {"type": "boolean", "removedIn": 2},
		"extra": {"type": "json"},
		"margin": {"type": "uuid", "readRoles": ["Clerk"]}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "LineItem"}, "spec": {
		"permissions": {"Clerk": ["create", "read", "update", "delete"]}, "fields": {
		"name": {"type": "text"},
		"part": {"type": "oneof", "target": "Part"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Screw"}, "spec": {"optimisticLocking": true,
		"permissions": {"Clerk": ["create", "read", "update", "delete"]}, "fields": {"name": {"type": "string"},
		"bolts": {"type": "ref", "target": "Screw", "relation": "OneToMany", "mappedBy": "bolt"},
		"bolt": {"type": "ref", "target": "Screw", "relation": "ManyToOne"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Nail"}, "spec": {"since": 2, "tenantScoped": true,
		"permissions": {"Clerk": ["create", "read", "update", "delete"]}, "fields": {"name": {"type": "string"}}}},
	{"apiVersion": "entityapi/v1", "kind": "OneOf", "metadata": {"name": "Part"}, "spec": {"members": ["Screw", "Nail"]}}
]');

CREATE FUNCTION pg_temp.part(version int, VARIADIC path text[]) RETURNS jsonb LANGUAGE sql AS
	$$ SELECT entityapi.openapi(version)::jsonb #> path $$;

-- what is stored is what is made
SELECT version, length(etag), document::jsonb = entityapi.openapi(version)::jsonb FROM entityapi.openapi_document ORDER BY 1;
SET entityapi.base_url = 'https://x.example';
SELECT pg_temp.part(1, 'servers'), pg_temp.part(1, 'components') = (SELECT document::jsonb->'components' FROM entityapi.openapi_document WHERE version = 1);
RESET entityapi.base_url;

-- attributes of answers, of creation, of changes
SELECT key, value FROM jsonb_each(pg_temp.part(1, 'components', 'schemas', 'LineAttributes', 'properties'));
SELECT key, value FROM jsonb_each(pg_temp.part(2, 'components', 'schemas', 'LineCreateDocument', 'properties', 'data', 'properties', 'attributes', 'properties')) WHERE key IN ('price', 'kind', 'at', 'old', 'code');
SELECT pg_temp.part(2, 'components', 'schemas', 'LineCreateDocument', 'properties', 'data', 'properties', 'attributes', 'required'),
	pg_temp.part(2, 'components', 'schemas', 'LineCreateDocument', 'properties', 'data', 'required');
SELECT string_agg(key, ' ' ORDER BY key) FROM jsonb_each(pg_temp.part(2, 'components', 'schemas', 'LineUpdateDocument', 'properties', 'data', 'properties', 'attributes', 'properties'));

-- members of a one-of, by version; two fields whose schemas would have one name
SELECT n, v, pg_temp.part(v, 'components', 'schemas', n, 'properties', 'type', 'enum')
	FROM (VALUES ('LineItemPartRelationshipData'), ('LineItemPartRelationshipData2')) s(n), generate_series(1, 2) v;
SELECT pg_temp.part(1, 'components', 'schemas', 'LineItemResource', 'properties', 'relationships', 'properties', 'part'),
	pg_temp.part(1, 'components', 'schemas', 'LineResource', 'properties', 'relationships', 'properties', 'itemPart');

-- paths by version; all of a version that goes are deprecated
SELECT v, count(*) FILTER (WHERE key LIKE '/api/%') AS api, count(*) FILTER (WHERE key LIKE '%nails%') AS nails,
	count(*) FILTER (WHERE key NOT LIKE '/api/%' AND value::text LIKE '%deprecated%') AS odd,
	count(*) FILTER (WHERE key LIKE '/api/%' AND value::text NOT LIKE '%"deprecated": true%') AS active
	FROM generate_series(1, 2) v, jsonb_each(pg_temp.part(v, 'paths')) GROUP BY 1 ORDER BY 1;
SELECT pg_temp.part(1, 'paths', '/api/v1/screws/{id}', 'get', 'responses', '200', 'headers'),
	pg_temp.part(2, 'paths', '/api/v2/screws/{id}', 'get', 'responses', '200', 'headers');
SELECT jsonb_object_agg(key, value->'operationId' ORDER BY key) - 'parameters' FROM jsonb_each(pg_temp.part(1, 'paths', '/api/v1/lineItems/{id}'));
SELECT value FROM jsonb_array_elements(pg_temp.part(1, 'tags')) WHERE value->>'name' = 'Line';
SELECT pg_temp.part(1, 'components', 'responses', '404', 'description');

-- every reference leads somewhere, and nothing is there in vain
WITH all_refs AS (
	SELECT DISTINCT v, m[1] AS name FROM generate_series(1, 2) v,
		regexp_matches(entityapi.openapi(v)::text, '"\$ref":"#/components/([^"]+)"', 'g') m),
parts AS (
	SELECT v, kind.key || '/' || part.key AS name FROM generate_series(1, 2) v,
		jsonb_each(pg_temp.part(v, 'components')) kind, jsonb_each(kind.value) part WHERE kind.key <> 'securitySchemes')
SELECT r.v AS v1, r.name AS refers, p.v AS v2, p.name AS unused FROM all_refs r FULL JOIN parts p USING (v, name) WHERE r.name IS NULL OR p.name IS NULL;

-- lists take what lists take, related ones as well
SELECT path, (SELECT string_agg(replace(p->>'$ref', '#/components/parameters/', ''), ' ')
	FROM jsonb_array_elements(pg_temp.part(1, 'paths', path, 'get', 'parameters')) p)
FROM (VALUES ('/api/v1/screws'), ('/api/v1/screws/{id}/bolts'), ('/api/v1/screws/{id}/bolt'), ('/manage/audit'), ('/auth/me/api-keys')) v(path);

-- one tenant: no paths of tenants, no header that names one
SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
SELECT count(*) >= 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"tenancy": "SINGLE", "schema": "openapi_test"}}]');
SELECT string_agg(key, ' ') FROM jsonb_object_keys(pg_temp.part(1, 'paths')) key WHERE key ~ '^/manage/tenants(/{id})?$';
SELECT pg_temp.part(1, 'components', 'parameters', 'tenant') IS NULL, entityapi.openapi(2) IS NULL, count(*) FROM entityapi.openapi_document;
SELECT count(*) >= 0 AS applied FROM entityapi.apply_manifest('[]');
DELETE FROM entityapi.tenant;
DROP SCHEMA openapi_test;
