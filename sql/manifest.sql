-- Applying manifests: from nothing, again, and with every kind of change

-- Everything within the transaction; sql/online is about the rest
SET entityapi.online_rows = 0;

CREATE FUNCTION pg_temp.document(kind text, name text, spec jsonb)
RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', kind,
							  'metadata', jsonb_build_object('name', name),
							  'spec', spec)
$$;

-- The statements, or the faults
CREATE FUNCTION pg_temp.apply(documents jsonb, dry_run boolean DEFAULT false,
							  allow_data_loss text[] DEFAULT '{}')
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	RETURN QUERY SELECT a.statement
				 FROM entityapi.apply_manifest(documents, dry_run, allow_data_loss) a
				 ORDER BY a.step;
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN QUERY SELECT format('%s %s: %s (%s)', f->>'document', f->>'pointer',
							   f->>'message', f->>'hint')
				 FROM jsonb_array_elements(detail::jsonb) f;
END
$$;

-- No test before this one, or any: there is a service, which declares nothing
SELECT count(*) >= 0 AS applied FROM entityapi.apply_manifest('[]');
CREATE TEMP TABLE store (kind text, name text, spec jsonb);
INSERT INTO store VALUES
('Service', 'service', '{"schema": "store_test", "defaultRoles": ["Clerk"], "audit": {"entities": false}}'),
('Versions', 'versions', '{"versions": {"1": {"status": "SUNSET", "sunset": "2027-01-01"}, "2": {"status": "ACTIVE"}}}'),
('Roles', 'roles', '{"roles": {"Clerk": {"description": "sells"}, "Auditor": null}}'),
('SecurityAttributes', 'attributes', '{"attributes": {"department": {"type": "string", "allowedValues": ["sales", "stock"]}}}'),
('OneOf', 'Billable', '{"members": ["Product", "ServicePackage"]}'),
('Entity', 'Country', '{"tenantScoped": false, "plural": "Countries", "fields": {
	"code": {"type": "string", "unique": true, "required": true, "maxLength": 2, "pattern": "^[A-Z]{2}$"}}}'),
('Entity', 'Customer', '{"softDelete": true, "optimisticLocking": true, "since": 1, "removedIn": 3,
	"permissions": {"Clerk": ["create", "read"], "*": ["read"]},
	"fields": {
		"name": {"type": "string", "required": true, "unique": true, "maxLength": 100},
		"country": {"type": "ref", "target": "Country"},
		"invoices": {"type": "ref", "target": "Invoice", "relation": "OneToMany", "mappedBy": "customer"},
		"profile": {"type": "ref", "target": "Profile", "relation": "OneToOne", "mappedBy": "customer"}}}'),
('Entity', 'Profile', '{"fields": {
		"customer": {"type": "ref", "target": "Customer", "relation": "OneToOne", "required": true, "onDelete": "restrict"},
		"aString": {"type": "string", "minLength": 1, "default": "x", "writeOnce": true},
		"aText": {"type": "text"},
		"anInteger": {"type": "integer", "minimum": -5, "maximum": 5, "default": 0},
		"aLong": {"type": "long", "index": true},
		"aDecimal": {"type": "decimal", "precision": 12, "scale": 2, "default": 1.50, "minimum": 0},
		"aBoolean": {"type": "boolean", "default": true},
		"aDate": {"type": "date", "minimum": "2000-01-01"},
		"aDatetime": {"type": "datetime", "readOnly": true},
		"anUuid": {"type": "uuid", "unique": true},
		"aJson": {"type": "json", "default": {"a": [1, null]}, "readRoles": ["Auditor"]},
		"anEnum": {"type": "string", "enum": ["LOW", "HIGH"], "default": "LOW", "required": true}}}'),
('Entity', 'Invoice', '{"indexes": [["status", "issuedAt"], ["customer", "issuedAt"]], "fields": {
		"status": {"type": "string"},
		"issuedAt": {"type": "datetime"},
		"customer": {"type": "ref", "target": "Customer", "relation": "ManyToOne", "required": true},
		"lines": {"type": "ref", "target": "LineItem", "relation": "OneToMany", "mappedBy": "invoice"},
		"tags": {"type": "ref", "target": "Tag", "relation": "ManyToMany"}}}'),
('Entity', 'LineItem', '{"fields": {
		"quantity": {"type": "integer", "required": true},
		"invoice": {"type": "ref", "target": "Invoice", "required": true, "onDelete": "cascade"},
		"billable": {"type": "oneof", "target": "Billable", "required": true}}}'),
('Entity', 'Product', '{"fields": {
		"parent": {"type": "ref", "target": "Product", "onDelete": "setNull"},
		"related": {"type": "ref", "target": "Product", "relation": "ManyToMany"},
		"relatedFrom": {"type": "ref", "target": "Product", "relation": "ManyToMany", "mappedBy": "related"},
		"lines": {"type": "ref", "target": "LineItem", "relation": "OneToMany", "mappedBy": "billable"}}}'),
('Entity', 'ServicePackage', '{"fields": {"name": {"type": "string"}}}'),
('Entity', 'Tag', '{"fields": {
		"label": {"type": "string"},
		"invoices": {"type": "ref", "target": "Invoice", "relation": "ManyToMany", "mappedBy": "tags"}}}');

CREATE FUNCTION pg_temp.documents() RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_agg(pg_temp.document(kind, name, spec) ORDER BY kind DESC, name)
	FROM store
$$;

-- A dry run shows all statements and changes nothing

SELECT pg_temp.apply(pg_temp.documents(), true);
SELECT count(*) FROM entityapi.entity;
SELECT role, entity, gained, lost, rows_before, rows_after, complete FROM entityapi.compare_rights(pg_temp.documents())
WHERE role = 'Clerk';
SELECT to_regnamespace('store_test');

-- The real run takes the same number, the second one none and no revision

SELECT coalesce(max(revision), 0) AS before FROM entityapi.revision \gset
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());
SELECT count(*) FROM entityapi.apply_manifest(entityapi.export_manifest());
SELECT revision - :before AS revisions, length(checksum) AS checksum,
	cardinality(statements) AS statements, json_array_length(documents) AS documents
FROM entityapi.revision WHERE revision > :before;

-- "source" only names a document in messages

SELECT count(*) FROM entityapi.apply_manifest((
	SELECT jsonb_agg(d || '{"source": "a.yaml#1"}')
	FROM jsonb_array_elements(pg_temp.documents()) d));
SELECT bool_or(d ? 'source') FROM jsonb_array_elements(entityapi.export_manifest()::jsonb) d;

-- What backends load

SELECT name, collection, collection_lower, type FROM entityapi.entity ORDER BY name;
SELECT jsonb_pretty(definition::jsonb) FROM entityapi.entity WHERE name = 'LineItem';
SELECT e.name, f->>'name' AS field, f->>'kind' AS kind,
	(SELECT string_agg(concat(m->>'entity', '.', m->>'column'), ', ') FROM jsonb_array_elements(f->'members') m) AS members,
	concat_ws(' ', f->'join'->>'table', f->'join'->>'near', f->'join'->>'far') AS "join"
FROM entityapi.entity e, jsonb_array_elements(e.definition::jsonb->'fields') f
WHERE f->>'kind' <> 'attribute'
ORDER BY 1, 2;
SELECT f->>'name' AS field, f - '{name,kind,type,column}'::text[] AS rest
FROM entityapi.entity e, jsonb_array_elements(e.definition::jsonb->'fields') f
WHERE e.name = 'Profile' AND f->>'kind' = 'attribute' ORDER BY 1;
SELECT jsonb_pretty(definition::jsonb - 'revision') FROM entityapi.service;

-- Rows, in the way of what follows

INSERT INTO store_test.country (id, code, created_at, updated_at)
VALUES ('00000000-0000-0000-0000-00000000000a', 'SI', now(), now());
INSERT INTO store_test.customer (tenant_id, id, name, country_id, version, created_at, updated_at)
SELECT '00000000-0000-0000-0000-000000000001', ('00000000-0000-0000-0000-00000000001' || i)::uuid,
	'Customer ' || i, '00000000-0000-0000-0000-00000000000a', 0, now(), now()
FROM generate_series(1, 3) i;
INSERT INTO store_test.invoice (tenant_id, id, status, customer_id, created_at, updated_at)
SELECT tenant_id, id, name, id, now(), now() FROM store_test.customer;

-- Additions and widenings

UPDATE store SET spec = jsonb_set(spec, '{fields}', spec->'fields' || '{
	"email": {"type": "string", "unique": true},
	"level": {"type": "string", "required": true, "default": "SILVER", "enum": ["SILVER", "GOLD"]},
	"name": {"type": "string", "required": true, "unique": true, "maxLength": 200}}')
WHERE name = 'Customer';
UPDATE store SET spec = jsonb_set(spec, '{fields}', spec->'fields' || '{
	"anInteger": {"type": "long", "minimum": -5, "maximum": 5, "default": 0},
	"aDecimal": {"type": "decimal", "precision": 14, "scale": 3, "default": 1.50, "minimum": 0}}')
WHERE name = 'Profile';
UPDATE store SET spec = spec || '{"indexes": [["status", "issuedAt"]], "optimisticLocking": true}'
WHERE name = 'Invoice';
INSERT INTO store VALUES ('Entity', 'Shelf', '{"fields": {"products": {"type": "ref", "target": "Product", "relation": "ManyToMany"}}}');
SELECT pg_temp.apply(pg_temp.documents());
SELECT name, level, email FROM store_test.customer ORDER BY name;
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());

-- A field under a new name keeps its values

UPDATE store SET spec = jsonb_set(spec #- '{fields,status}', '{fields,state}',
	'{"type": "string", "renamedFrom": "status", "required": true}') || '{"indexes": []}'
WHERE name = 'Invoice';
SELECT pg_temp.apply(pg_temp.documents());
SELECT state FROM store_test.invoice ORDER BY state;
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());

-- Refused for the rows that are there

CREATE TEMP TABLE kept AS SELECT * FROM store;
UPDATE store SET spec = jsonb_set(spec, '{fields}', spec->'fields' || '{
	"number": {"type": "integer", "required": true},
	"state": {"type": "string", "required": true, "enum": ["OPEN"]},
	"issuedAt": {"type": "datetime", "required": true},
	"note": {"type": "string", "default": "same", "required": true, "unique": true}}')
WHERE name = 'Invoice';
UPDATE store SET spec = spec || '{"tenantScoped": true}' WHERE name = 'Country';
SELECT pg_temp.apply(pg_temp.documents());
SELECT pg_temp.apply(pg_temp.documents(), true) LIMIT 1;

-- Refused for what would be lost, until that is allowed by name

DELETE FROM store;
INSERT INTO store SELECT * FROM kept WHERE name <> 'Shelf';
UPDATE store SET spec = spec #- '{fields,email}' || '{"removedIn": 4}' WHERE name = 'Customer';
UPDATE store SET spec = jsonb_set(spec, '{fields,name,maxLength}', '5') WHERE name = 'Customer';
UPDATE store SET spec = jsonb_set(spec, '{fields,state,type}', '"integer"') #- '{fields,tags}' WHERE name = 'Invoice';
UPDATE store SET spec = spec #- '{fields,invoices}' WHERE name = 'Tag';
UPDATE store SET spec = spec #- '{fields,country}' WHERE name = 'Customer';
DELETE FROM store WHERE name = 'Country';
SELECT pg_temp.apply(pg_temp.documents());
DELETE FROM store_test.invoice;

-- Cut as allowed, names are no longer unique: the statement itself says so

UPDATE store_test.customer SET name = id::text;
SELECT pg_temp.apply(pg_temp.documents(), allow_data_loss =>
	'{Shelf,Country,Customer.email,Customer.name,Customer.country,Invoice.state,Invoice.tags}');
UPDATE store_test.customer SET name = right(id::text, 3);
SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest(pg_temp.documents(), allow_data_loss =>
	'{Shelf,Country,Customer.email,Customer.name,Customer.country,Invoice.state,Invoice.tags}');
SELECT name FROM store_test.customer ORDER BY name;

-- A column made anew keeps its index

UPDATE store SET spec = jsonb_set(spec, '{fields,aLong,type}', '"date"') WHERE name = 'Profile';
SELECT pg_temp.apply(pg_temp.documents(), allow_data_loss => '{Profile.aLong}');

-- A name that nothing has is told, and what may have been meant

DO $$ BEGIN
	PERFORM entityapi.apply_manifest(pg_temp.documents(), true,
									 '{Profil,Profile.along,Roles/none,Profile}');
END $$;

-- Hidden rows must not appear again

UPDATE store SET spec = spec - 'softDelete' WHERE name = 'Customer';
UPDATE store_test.customer SET deleted_at = now() WHERE name = '011';
SELECT pg_temp.apply(pg_temp.documents());
DELETE FROM store_test.customer;
SELECT pg_temp.apply(pg_temp.documents());

-- tenantScoped may change while there are no rows

UPDATE store SET spec = spec #- '{fields,lines}' || '{"tenantScoped": false}' WHERE name IN ('ServicePackage', 'Product');
SELECT pg_temp.apply(pg_temp.documents());

-- Tenancy of a service that has entities stays as it is

UPDATE store SET spec = spec || '{"tenancy": "SINGLE"}' WHERE name = 'service';
SELECT pg_temp.apply(pg_temp.documents());

-- Another schema: the tables move

UPDATE store SET spec = spec - 'tenancy' || '{"schema": "store_moved"}' WHERE name = 'service';
SELECT statement FROM entityapi.apply_manifest(pg_temp.documents()) WHERE statement ~ 'SCHEMA' ORDER BY step;
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());

-- A table of somebody else is not touched

CREATE TABLE store_moved.gadget (id integer);
INSERT INTO store VALUES ('Entity', 'Gadget', '{"fields": {}}');
SELECT pg_temp.apply(pg_temp.documents());

-- Two names that are too long, and have the same hash

UPDATE store SET name = 'E' || repeat('x', 39), spec = '{"fields": {"fyyyyyyyyyyyyyyyyyyyymmcwekymo": {"type": "string", "unique": true},
	"fyyyyyyyyyyyyyyyyyyyynveekmwqc": {"type": "string", "unique": true}}}' WHERE name = 'Gadget';
SELECT pg_temp.apply(pg_temp.documents());
DELETE FROM store WHERE name ~ 'xxx$';

-- Only superusers apply, or whoever they trust

SET ROLE entityapi_client;
SELECT entityapi.apply_manifest('[]');
RESET ROLE;
SELECT entityapi.apply_manifest(NULL);

-- Away with everything

SELECT pg_temp.apply('[]');
SELECT pg_temp.apply('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity));
SELECT count(*) FROM entityapi.entity;
SELECT entityapi.export_manifest();

-- SINGLE mode brings its tenant along, once

DELETE FROM store WHERE name NOT IN ('service', 'Tag');
UPDATE store SET spec = '{"schema": "store_test", "tenancy": "SINGLE"}' WHERE name = 'service';
UPDATE store SET spec = '{"fields": {}}' WHERE name = 'Tag';
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents(), true);
SELECT count(*) FROM entityapi.tenant;
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());
SELECT count(*) FROM entityapi.apply_manifest(pg_temp.documents());
SELECT t.name, t.slug, t.status, t.attributes, s.definition::jsonb->>'tenancy' AS tenancy
FROM entityapi.tenant t JOIN entityapi.service s ON s.definition::jsonb->>'singleTenant' = t.id::text;
SELECT pg_temp.apply('[]', allow_data_loss => '{Tag}');
SELECT definition::jsonb - 'revision' AS definition FROM entityapi.service;
DELETE FROM entityapi.tenant;

DROP SCHEMA store_test;
DROP SCHEMA store_moved CASCADE;
