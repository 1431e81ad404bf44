-- What 1.2 changes of 1.1 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- Until now the tables belonged to entityapi_owner, whose members could hang
-- onto them what runs as whoever uses them; from here on that would be a
-- superuser.  What they have of triggers, rules, policies, children,
-- expressions and types is ours or PostgreSQL's, or somebody has to look.
DO $$
DECLARE
	found text;
BEGIN
	WITH member AS (
		SELECT m.classid, m.objid
		FROM pg_catalog.pg_depend m
		JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
		WHERE m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND m.deptype = 'e' AND e.extname = 'entityapi'
	), month AS (
		SELECT i.inhrelid AS id
		FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'entityapi.audit'::pg_catalog.regclass AND c.relispartition
	), relation AS (
		SELECT c.oid AS id, c.relkind AS kind
		FROM pg_catalog.pg_class c
		WHERE c.oid IN (SELECT objid FROM member WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass UNION SELECT id FROM month)
	), expression AS (
		SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass AS class, d.oid AS id, pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS text
		FROM pg_catalog.pg_attrdef d JOIN relation r ON r.id = d.adrelid
		UNION ALL
		SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid, pg_catalog.pg_get_expr(c.conbin, c.conrelid)
		FROM pg_catalog.pg_constraint c JOIN relation r ON r.id = c.conrelid
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid,
			   pg_catalog.concat(pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid))
		FROM pg_catalog.pg_index i JOIN relation r ON r.id = i.indrelid
	), stranger AS (
		SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass AS class, t.oid AS id
		FROM pg_catalog.pg_trigger t JOIN relation r ON r.id = t.tgrelid
		WHERE NOT t.tgisinternal AND (t.tgqual IS NOT NULL OR t.tgfoid NOT IN (SELECT objid FROM member))
		UNION ALL
		SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid
		FROM pg_catalog.pg_rewrite w JOIN relation r ON r.id = w.ev_class
		WHERE NOT (r.kind = 'v' AND w.rulename = '_RETURN')
		UNION ALL
		SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid
		FROM pg_catalog.pg_policy p JOIN relation r ON r.id = p.polrelid
		UNION ALL
		SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid
		FROM pg_catalog.pg_statistic_ext s JOIN relation r ON r.id = s.stxrelid
		WHERE s.stxexprs IS NOT NULL
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.inhrelid
		FROM pg_catalog.pg_inherits i
		WHERE i.inhparent IN (SELECT id FROM relation) AND i.inhrelid NOT IN (SELECT id FROM month)
		   OR i.inhrelid IN (SELECT id FROM relation) AND i.inhparent <> 'entityapi.audit'::pg_catalog.regclass
		UNION ALL
		-- a name right before a parenthesis is a call
		SELECT x.class, x.id FROM expression x
		WHERE pg_catalog.regexp_replace(x.text, '\mjsonb_typeof\(', '', 'g') ~ '["\w]\('
		UNION ALL
		-- what is PostgreSQL's own is on no record of dependencies
		SELECT d.classid, d.objid
		FROM pg_catalog.pg_depend d
		WHERE (d.classid, d.objid) IN (SELECT class, id FROM expression
				UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, id FROM relation)
		  AND d.refclassid IN ('pg_catalog.pg_type'::pg_catalog.regclass, 'pg_catalog.pg_proc'::pg_catalog.regclass,
				'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_opclass'::pg_catalog.regclass,
				'pg_catalog.pg_collation'::pg_catalog.regclass)
		  AND (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM member)
	)
	SELECT pg_catalog.string_agg(DISTINCT pg_catalog.pg_describe_object(s.class, s.id, 0), ', ') INTO found FROM stranger s;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION 'the tables of the extension have what is no part of it: %', found
			USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Drop it, then update.';
	END IF;
END
$$;

-- a mapping that was good until now is that of the role that has the name
ALTER TABLE entityapi.mapped_role ADD COLUMN role_oid oid;
UPDATE entityapi.mapped_role m SET role_oid = r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = m.role;

-- After the parts

-- a signing key that is revoked where rows come by replication
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;
