-- Rules that hold for every table made for entities, read from the catalogs

SELECT count(*) > 0 AS applied FROM entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"}, "spec": {"schema": "tables_test"}},
	{"apiVersion": "entityapi/v1", "kind": "OneOf", "metadata": {"name": "Place"}, "spec": {"members": ["Room", "Garden"]}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Country"}, "spec": {"tenantScoped": false, "fields": {
		"code": {"type": "string", "unique": true},
		"neighbours": {"type": "ref", "target": "Country", "relation": "ManyToMany"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Room"}, "spec": {"softDelete": true, "fields": {
		"number": {"type": "integer", "unique": true, "index": true},
		"country": {"type": "ref", "target": "Country", "required": true},
		"doors": {"type": "ref", "target": "Room", "relation": "ManyToMany"},
		"visited": {"type": "ref", "target": "Country", "relation": "ManyToMany"},
		"key": {"type": "ref", "target": "Garden", "relation": "OneToOne"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Garden"}, "spec": {"optimisticLocking": true, "indexes": [["opened", "name"]], "fields": {
		"name": {"type": "string", "unique": true},
		"opened": {"type": "date"},
		"owner": {"type": "ref", "target": "Room", "relation": "OneToOne", "onDelete": "setNull"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Party"}, "spec": {"fields": {
		"place": {"type": "oneof", "target": "Place", "required": true},
		"nextOfAVeryLongNameThatIsLongerThanAnIdentifierOfPostgresMayEverBeX": {"type": "ref", "target": "Party"},
		"nextOfAVeryLongNameThatIsLongerThanAnIdentifierOfPostgresMayEverBeY": {"type": "ref", "target": "Party"}}}}
]');

CREATE TEMP VIEW made AS
SELECT c.oid, c.relname, c.relrowsecurity, c.relowner,
	EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS of_tenants
FROM pg_class c
WHERE c.relnamespace = 'tables_test'::regnamespace AND c.relkind = 'r';

SELECT relname, of_tenants FROM made ORDER BY relname;

-- Each of these lists what breaks a rule, and must be empty

-- the tenant column is not null, and so is the id

SELECT m.relname, a.attname FROM made m JOIN pg_attribute a ON a.attrelid = m.oid
WHERE a.attname IN ('tenant_id', 'id') AND (NOT a.attnotnull OR a.atttypid <> 'uuid'::regtype);

-- tenant_id starts every primary key and every unique index

SELECT m.relname, i.indexrelid::regclass FROM made m JOIN pg_index i ON i.indrelid = m.oid
JOIN pg_attribute a ON a.attrelid = m.oid AND a.attnum = i.indkey[0]
WHERE m.of_tenants AND (i.indisunique OR i.indisprimary) AND a.attname <> 'tenant_id';

-- and every other index, but for those that serve references out of tenancy

SELECT m.relname, i.indexrelid::regclass FROM made m JOIN pg_index i ON i.indrelid = m.oid
JOIN pg_attribute a ON a.attrelid = m.oid AND a.attnum = i.indkey[0]
WHERE m.of_tenants AND a.attname <> 'tenant_id' AND NOT EXISTS (
	SELECT 1 FROM pg_constraint f JOIN made t ON t.oid = f.confrelid
	WHERE f.conrelid = m.oid AND f.contype = 'f' AND f.conkey = ARRAY[a.attnum] AND NOT t.of_tenants);

-- and every foreign key, on both sides, between tables of tenants

SELECT m.relname, f.conname FROM made m JOIN pg_constraint f ON f.conrelid = m.oid AND f.contype = 'f'
JOIN made t ON t.oid = f.confrelid
JOIN pg_attribute near ON near.attrelid = m.oid AND near.attnum = f.conkey[1]
JOIN pg_attribute far ON far.attrelid = t.oid AND far.attnum = f.confkey[1]
WHERE t.of_tenants AND (near.attname <> 'tenant_id' OR far.attname <> 'tenant_id');

-- a table of no tenant refers to no table of tenants

SELECT m.relname, f.conname FROM made m JOIN pg_constraint f ON f.conrelid = m.oid AND f.contype = 'f'
JOIN made t ON t.oid = f.confrelid WHERE t.of_tenants AND NOT m.of_tenants;

-- foreign keys act on nothing by themselves, and can be deferred

SELECT conname FROM made m JOIN pg_constraint f ON f.conrelid = m.oid AND f.contype = 'f'
WHERE f.confdeltype <> 'a' OR f.confupdtype <> 'a' OR NOT f.condeferrable OR f.condeferred;

-- some index begins with the columns of every foreign key

SELECT conname FROM made m JOIN pg_constraint f ON f.conrelid = m.oid AND f.contype = 'f'
WHERE NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = m.oid AND i.indpred IS NULL AND
	(SELECT array_agg(k ORDER BY n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY u (k, n)
	 WHERE n <= cardinality(f.conkey)) = f.conkey);

-- no trigger but those of the foreign keys

SELECT m.relname, g.tgname FROM made m JOIN pg_trigger g ON g.tgrelid = m.oid WHERE NOT g.tgisinternal;

-- one owner, rows guarded, no rights for others

SELECT relname FROM made m WHERE relowner <> 'entityapi_owner'::regrole OR NOT relrowsecurity;
SELECT m.relname, g.grantee::regrole, g.privilege_type
FROM made m JOIN pg_class c ON c.oid = m.oid, aclexplode(c.relacl) g
WHERE g.grantee NOT IN ('entityapi_owner'::regrole, 'entityapi_reader'::regrole);

-- Names are derived from that of the entity

SELECT count(*) AS statements FROM entityapi.apply_manifest((
	SELECT jsonb_agg(d) || (SELECT jsonb_agg(jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity',
		'metadata', jsonb_build_object('name', n), 'spec', '{"fields": {}}'::jsonb))
		FROM unnest('{OrderCategory,Box,Person,SalesPerson,HTMLPage,Address,Day,GrandChild,Quiz,invoiceBus,Area51,TVSeries,Wish,user,API}'::text[]) n)
	FROM jsonb_array_elements(entityapi.export_manifest()::jsonb) d));
SELECT name, collection, type, definition::jsonb->>'table' AS "table" FROM entityapi.entity ORDER BY name COLLATE "C";

-- Names that are too long end in a hash, and stay apart

SELECT attname FROM pg_attribute WHERE attrelid = 'tables_test.party'::regclass AND attname LIKE 'next%' ORDER BY attname;

-- One-of: exactly one member where it is required

SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = 'tables_test.party'::regclass AND contype = 'c';

-- Unique among rows that are not deleted

SELECT indexdef FROM pg_indexes WHERE schemaname = 'tables_test' AND indexdef ~ 'WHERE' ORDER BY 1;

SELECT count(*) AS left_over FROM entityapi.apply_manifest('[]', allow_data_loss => ARRAY(SELECT name FROM entityapi.entity))
WHERE statement !~ '^(DROP TABLE|--)';
DROP VIEW made;
DROP SCHEMA tables_test;
