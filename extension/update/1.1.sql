-- What 1.2 changes of 1.1 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- a mapping that was good until now is that of the role that has the name
ALTER TABLE entityapi.mapped_role ADD COLUMN role_oid oid, ADD COLUMN node_oids jsonb;
UPDATE entityapi.mapped_role m SET role_oid = r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = m.role;

-- Creations and updates are in no index by action any more, and ids of requests
-- are held byte by byte.  Months without records have it so, and those to come;
-- others keep what they have.
DO $$
DECLARE
	indexes CONSTANT text[] := ARRAY[
		['action_at_id_idx', $i$(action, at, id) WHERE action OPERATOR(pg_catalog.!~~) 'ENTITY%ATE'$i$],
		['request_id_idx', '(request_id pg_catalog.text_pattern_ops)']];
	definition text[];
	part record;
	has_records boolean;
BEGIN
	FOR part IN
		SELECT c.relname AS name
		FROM pg_catalog.pg_inherits i
			JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
		WHERE i.inhparent OPERATOR(pg_catalog.=) 'entityapi.audit'::pg_catalog.regclass
	LOOP
		EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM entityapi.%I)', part.name) INTO has_records;
		IF part.name OPERATOR(pg_catalog.=) 'audit_default' OR NOT has_records THEN
			FOREACH definition SLICE 1 IN ARRAY indexes LOOP
				EXECUTE pg_catalog.format('DROP INDEX IF EXISTS entityapi.%I', part.name || '_' || definition[1]);
				EXECUTE pg_catalog.format('CREATE INDEX ON entityapi.%I ', part.name) || definition[2];
			END LOOP;
		END IF;
	END LOOP;
END
$$;

-- what a resource was is told by records that say which version they made, and
-- under whose names
ALTER TABLE entityapi.audit ADD COLUMN version bigint, ADD COLUMN revision integer;

-- After the parts

-- a signing key that is revoked where rows come by replication
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;

-- Declarations that were good until now; what they would lose is kept (409).
DO $$
DECLARE
	pair record;
BEGIN
	FOR pair IN
		SELECT child.name AS child, f.field OPERATOR(pg_catalog.->>) 'name' AS field, parent.name AS parent
		FROM entityapi.entity child
			CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(
				child.definition::pg_catalog.jsonb OPERATOR(pg_catalog.->) 'fields') f (field)
			CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(f.field OPERATOR(pg_catalog.->) 'members') m (member)
			JOIN entityapi.entity parent
				ON parent.name OPERATOR(pg_catalog.=) (m.member OPERATOR(pg_catalog.->>) 'entity')
		WHERE f.field OPERATOR(pg_catalog.->>) 'onDelete' OPERATOR(pg_catalog.=) 'cascade'
			AND parent.definition::pg_catalog.jsonb OPERATOR(pg_catalog.@>) '{"softDelete": true}'
			AND NOT child.definition::pg_catalog.jsonb OPERATOR(pg_catalog.@>) '{"softDelete": true}'
		ORDER BY child.name, 2, parent.name
	LOOP
		RAISE WARNING '% is deleted softly, and its % would be gone for good by "%" (onDelete: cascade)',
			pair.parent, pair.child, pair.field
			USING HINT = pg_catalog.format('Until the manifests say otherwise, %s that has %s cannot be deleted: give %2$s'
				' softDelete as well, or use onDelete: restrict.', pair.parent, pair.child);
	END LOOP;
END
$$;

-- Names are known from now on, for records since the manifests were applied
INSERT INTO entityapi.past_name (entity, field, name, first)
SELECT e.name, f.field, f.name, r.revision
FROM entityapi.entity e
	CROSS JOIN LATERAL (
		SELECT ''::text, e.type
		UNION ALL
		SELECT d.field OPERATOR(pg_catalog.->>) 'name', d.field OPERATOR(pg_catalog.->>) 'name'
		FROM pg_catalog.jsonb_array_elements(e.definition::pg_catalog.jsonb OPERATOR(pg_catalog.->) 'fields') d (field)
	) f (field, name)
	CROSS JOIN (SELECT pg_catalog.max(a.revision) FROM entityapi.revision a) r (revision)
WHERE EXISTS (
	SELECT FROM entityapi.service s
	WHERE s.definition::pg_catalog.jsonb OPERATOR(pg_catalog.@>) '{"audit": {"entities": true}}');

-- The one row of each of two new tables
INSERT INTO entityapi.everywhere VALUES (true);
INSERT INTO entityapi.declaring VALUES (true);
