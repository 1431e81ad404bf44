-- Changes of tables that hold rows: what is left for after the transaction

CREATE TEMP TABLE shop (name text PRIMARY KEY, spec jsonb);
INSERT INTO shop VALUES
('Owner', '{"fields": {"name": {"type": "string"}}}'),
('Dog', '{"softDelete": false, "fields": {"name": {"type": "string"}, "chip": {"type": "integer"},
	"age": {"type": "integer"}, "kind": {"type": "string"}}}');
CREATE FUNCTION pg_temp.apply(dry_run boolean DEFAULT false)
RETURNS TABLE (statement text, deferred boolean, lock text, effect text) LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	RETURN QUERY SELECT a.statement, a.deferred, a.lock, a.effect
	FROM entityapi.apply_manifest((
		SELECT jsonb_agg(jsonb_build_object('apiVersion', 'entityapi/v1', 'kind', 'Entity',
			'metadata', jsonb_build_object('name', name), 'spec', spec)) ||
			'[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"schema": "online_test"}}]'
		FROM shop), dry_run) a ORDER BY step;
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN QUERY SELECT concat(f->>'pointer', ': ', f->>'message'), NULL::boolean, NULL, NULL
	FROM jsonb_array_elements(detail::jsonb) f;
END $$;
CREATE FUNCTION pg_temp.change(entity text, fields jsonb) RETURNS void LANGUAGE sql AS $$
	UPDATE shop SET spec = jsonb_set(spec, '{fields}', spec->'fields' || fields) WHERE name = entity
$$;
SELECT count(*) > 0 AS made FROM pg_temp.apply();
-- What is there of constraints and indexes, and whether it can be relied upon
CREATE TEMP VIEW made AS
SELECT conname::text AS name, CASE WHEN convalidated THEN '' ELSE 'NOT VALID ' END || contype::text AS state
FROM pg_constraint WHERE conrelid = 'online_test.dog'::regclass AND contype IN ('c', 'f', 'u')
UNION ALL
SELECT indexrelid::regclass::text, CASE WHEN indisvalid THEN 'index' ELSE 'INVALID index' END
FROM pg_index WHERE indrelid = 'online_test.dog'::regclass
UNION ALL
SELECT attname, 'NOT NULL' FROM pg_attribute
WHERE attrelid = 'online_test.dog'::regclass AND attnotnull AND attnum > 0 AND attname !~ '_at$|id$';

INSERT INTO online_test.dog (tenant_id, id, name, chip, age, kind, created_at, updated_at)
SELECT '00000000-0000-0000-0000-000000000001', ('00000000-0000-0000-0000-00000000001' || i)::uuid,
	'Dog ' || i, i, i, 'POODLE', now(), now() FROM generate_series(1, 3) i;

-- Every kind of change that looks at rows: nothing of it happens under a lock

SELECT pg_temp.change('Dog', '{"name": {"type": "string", "unique": true, "required": true}, "chip": {"type": "integer", "index": true},
	"age": {"type": "integer", "minimum": 0}, "kind": {"type": "string", "enum": ["POODLE", "PUG"]},
	"owner": {"type": "ref", "target": "Owner", "relation": "ManyToOne"},
	"size": {"type": "string", "required": true, "default": "S"}}');
UPDATE shop SET spec = spec || '{"indexes": [["kind", "age"]]}' WHERE name = 'Dog';
SELECT * FROM pg_temp.apply(true);
SELECT count(*) FROM entityapi.pending_steps;
SELECT relfilenode AS before FROM pg_class WHERE oid = 'online_test.dog'::regclass \gset
SELECT count(*) FROM pg_temp.apply();
SELECT relfilenode <> :before AS rewritten FROM pg_class WHERE oid = 'online_test.dog'::regclass;
SELECT * FROM made ORDER BY 1, 2;
SELECT step, part, entity, field, kind, statement, lock FROM entityapi.pending_steps;

-- Applied again it is nothing new, and still pending
SELECT * FROM pg_temp.apply();
SELECT count(*) FROM entityapi.apply_manifest(entityapi.export_manifest());
SELECT count(DISTINCT step) FROM entityapi.pending_steps;

-- What is written meanwhile has to fit
\set VERBOSITY terse
INSERT INTO online_test.dog (tenant_id, id, name, age, size, created_at, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'Rex', -1, 'S', now(), now());
INSERT INTO online_test.dog (tenant_id, id, size, created_at, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'S', now(), now());
\set VERBOSITY default

-- A change of something else keeps it pending
SELECT pg_temp.change('Owner', '{"phone": {"type": "string"}}');
SELECT statement FROM pg_temp.apply();
SELECT count(DISTINCT step) FROM entityapi.pending_steps;

-- What is no longer wanted is no longer pending, half made or not
CREATE INDEX dog__chip_idx ON online_test.dog (tenant_id, chip);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'online_test.dog__chip_idx'::regclass;
SELECT step, part, statement FROM entityapi.pending_steps WHERE name = 'dog__chip_idx';
SELECT pg_temp.change('Dog', '{"chip": {"type": "integer"}, "age": {"type": "integer"}, "name": {"type": "string"}}');
UPDATE shop SET spec = spec - 'indexes' WHERE name = 'Dog';
SELECT statement, deferred FROM pg_temp.apply();
SELECT * FROM made ORDER BY 1, 2;
SELECT kind, name, part FROM entityapi.pending_steps;

-- Wanted again, and under a new name: the promise goes along
SELECT pg_temp.change('Dog', '{"name": {"type": "string", "unique": true, "required": true}, "age": {"type": "integer", "minimum": 0}}');
SELECT count(*) > 0 AS changed FROM pg_temp.apply();
SELECT pg_temp.change('Dog', '{"label": {"type": "string", "unique": true, "required": true, "renamedFrom": "name"}}');
UPDATE shop SET spec = spec #- '{fields,name}' WHERE name = 'Dog';
SELECT statement, deferred FROM pg_temp.apply();
SELECT kind, name, part FROM entityapi.pending_steps;

-- Anybody may run the steps; one that cannot be done leaves the rest
UPDATE online_test.dog SET label = 'same';
\set VERBOSITY terse
SELECT statement FROM entityapi.pending_steps WHERE name = 'dog__label_key' AND part = 2 \gexec
\set VERBOSITY default
SELECT indisvalid FROM pg_index WHERE indexrelid = 'online_test.dog__label_key'::regclass;
SELECT part, statement FROM entityapi.pending_steps WHERE name = 'dog__label_key';
UPDATE online_test.dog SET label = 'Dog ' || chip::text;
SELECT statement FROM entityapi.pending_steps \gexec
SELECT * FROM entityapi.pending_steps;
SELECT * FROM made ORDER BY 1, 2;

-- The tables are as if they had been empty
SELECT entity, name FROM entityapi.pending_step ORDER BY step;
CREATE TEMP TABLE with_rows AS
SELECT conname::text AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conrelid = 'online_test.dog'::regclass
UNION ALL SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'online_test.dog'::regclass
UNION ALL SELECT attname, format_type(atttypid, atttypmod) || ' ' || attnotnull FROM pg_attribute
WHERE attrelid = 'online_test.dog'::regclass AND attnum > 0;
DROP VIEW made;
SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', false, '{Dog,Owner}');
SELECT count(*) FROM entityapi.pending_step;
SELECT count(*) > 0 AS made FROM pg_temp.apply();
SELECT coalesce(a.name, b.name) AS name, a.definition, b.definition AS anew FROM with_rows a FULL JOIN (
	SELECT conname::text AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conrelid = 'online_test.dog'::regclass
	UNION ALL SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'online_test.dog'::regclass
	UNION ALL SELECT attname, format_type(atttypid, atttypmod) || ' ' || attnotnull FROM pg_attribute
	WHERE attrelid = 'online_test.dog'::regclass AND attnum > 0) b ON a.name = b.name AND a.definition = b.definition
WHERE a.name IS NULL OR b.name IS NULL;

-- Rows that lack what is required are filled first, and can be changed until then
INSERT INTO online_test.dog (tenant_id, id, label, size, created_at, updated_at)
SELECT '00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'Rex ' || i, 'S', now(), now() FROM generate_series(1, 2) i;
SELECT pg_temp.change('Dog', '{"kind": {"type": "string", "required": true, "default": "PUG", "enum": ["POODLE", "PUG"]},
	"chip": {"type": "integer", "index": true, "minimum": 0}}');
SELECT statement, deferred, lock, effect FROM pg_temp.apply();
UPDATE online_test.dog SET age = 1;

-- An entity that is renamed takes along what is pending
UPDATE shop SET name = 'Hound', spec = spec || '{"renamedFrom": "Dog"}' WHERE name = 'Dog';
SELECT statement, deferred FROM pg_temp.apply() WHERE statement !~ '^(CREATE|DROP) POLICY|RENAME CONSTRAINT|^ALTER INDEX';
SELECT step, part, statement FROM entityapi.pending_steps;
SELECT statement FROM entityapi.pending_steps \gexec
SELECT * FROM entityapi.pending_steps;
SELECT DISTINCT kind, age FROM online_test.hound;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'online_test.hound'::regclass ORDER BY indexrelid::regclass::text;
SELECT conname, convalidated FROM pg_constraint
WHERE conrelid = 'online_test.hound'::regclass AND contype <> 'n' ORDER BY 1;
UPDATE shop SET name = 'Dog', spec = jsonb_set(spec, '{renamedFrom}', '"Hound"') WHERE name = 'Hound';
SELECT count(*) FILTER (WHERE deferred) AS deferred FROM pg_temp.apply();
DELETE FROM online_test.dog;

-- What a dry run says of changes that cannot wait
INSERT INTO online_test.dog (tenant_id, id, label, kind, size, created_at, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'Rex', 'PUG', 'S', now(), now());
SELECT pg_temp.change('Dog', '{"chip": {"type": "long"}, "label": {"type": "text", "maxLength": 300, "unique": true, "required": true}}');
UPDATE shop SET spec = spec || '{"softDelete": true}' WHERE name = 'Dog';
SELECT * FROM pg_temp.apply(true) WHERE lock IS NOT NULL;
-- below the number of rows that is asked for all is done at once
SET entityapi.online_rows = 2;
SELECT count(*) FILTER (WHERE deferred) AS deferred, count(*) > 0 AS some FROM pg_temp.apply(true);
-- what a value says decides nothing
SELECT pg_temp.change('Dog', '{"tag": {"type": "string", "enum": [" FOREIGN KEY (", " UNIQUE (", " NOT VALID"]},
	"word": {"type": "string", "default": " SET NOT NULL"}}');
SELECT statement, lock, effect FROM pg_temp.apply(true) WHERE statement ~ 'tag|word';
RESET entityapi.online_rows;

-- Who may say how it went
SET ROLE entityapi_client;
SELECT entityapi.note_step(1, '23505');
SELECT * FROM entityapi.pending_steps;
RESET ROLE;
SELECT count(*) > 0 AS dropped FROM entityapi.apply_manifest('[]', false, '{Dog,Owner}');
DROP SCHEMA online_test;
