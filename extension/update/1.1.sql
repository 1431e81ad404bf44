-- What 1.2 changes of 1.1 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- a mapping that was good until now is that of the role that has the name
ALTER TABLE entityapi.mapped_role ADD COLUMN role_oid oid;
UPDATE entityapi.mapped_role m SET role_oid = r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = m.role;

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
