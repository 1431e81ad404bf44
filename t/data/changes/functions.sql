-- What the tests of changes ask: the tables as the catalogs have them, and
-- what applying answers.

CREATE SCHEMA changes;
GRANT USAGE ON SCHEMA changes TO entityapi_owner;

-- All there is to a table but the order of its columns
CREATE FUNCTION changes.tables() RETURNS TABLE (name text, made text) LANGUAGE sql AS $$
	SELECT c.oid::regclass::text, concat_ws(E'\n',
		'rls ' || c.relrowsecurity || ' ' || c.relforcerowsecurity || ' owner ' || c.relowner::regrole,
		(SELECT string_agg(concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod),
				CASE WHEN a.attnotnull THEN 'not null' END, pg_get_expr(d.adbin, d.adrelid)), E'\n' ORDER BY a.attname)
		 FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
		(SELECT string_agg(concat_ws(' ', 'constraint', k.conname, pg_get_constraintdef(k.oid), k.convalidated), E'\n' ORDER BY k.conname)
		 FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype <> 'n'),
		(SELECT string_agg(concat_ws(' ', pg_get_indexdef(i.indexrelid), i.indisvalid), E'\n' ORDER BY i.indexrelid::regclass::text)
		 FROM pg_index i WHERE i.indrelid = c.oid),
		(SELECT string_agg(concat_ws(' ', 'policy', p.polname, p.polcmd, p.polroles::regrole[],
				pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)), E'\n' ORDER BY p.polname)
		 FROM pg_policy p WHERE p.polrelid = c.oid),
		(SELECT string_agg(concat_ws(' ', 'grant', g.privilege_type, g.grantee::regrole, g.is_grantable), E'\n'
				ORDER BY g.privilege_type, g.grantee::regrole::text)
		 FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g),
		(SELECT string_agg(concat_ws(' ', 'grant', a.attname, g.privilege_type, g.grantee::regrole), E'\n'
				ORDER BY a.attname, g.privilege_type, g.grantee::regrole::text)
		 FROM pg_attribute a, aclexplode(a.attacl) g
		 WHERE a.attrelid = c.oid AND NOT a.attisdropped),
		'usage ' || has_schema_privilege('entityapi_reader', c.relnamespace, 'USAGE'))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND n.nspname NOT IN ('entityapi', 'changes', 'information_schema') AND n.nspname !~ '^pg_'
$$;

-- The same, and what backends load, as one value
CREATE FUNCTION changes.state() RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object(
		'tables', (SELECT coalesce(jsonb_object_agg(name, made), '{}') FROM changes.tables()),
		'entities', (SELECT coalesce(jsonb_object_agg(name, definition), '{}') FROM entityapi.entity),
		'service', (SELECT definition::jsonb - 'revision' FROM entityapi.service))
$$;

-- What differs between two states, as text; nothing when they are equal
CREATE FUNCTION changes.difference(one jsonb, other jsonb) RETURNS text LANGUAGE sql AS $$
	WITH lines AS (
		SELECT side, kind, name, line
		FROM (VALUES ('-', one), ('+', other)) s (side, state), jsonb_each(state) k (kind, value),
			jsonb_each_text(value) v (name, made), regexp_split_to_table(made, E'\n') line)
	SELECT string_agg(concat_ws(' ', side, kind, name, line), E'\n' ORDER BY kind, name, line, side)
	FROM lines a
	WHERE NOT EXISTS (SELECT FROM lines b WHERE b.side <> a.side AND (b.kind, b.name, b.line) = (a.kind, a.name, a.line))
$$;

-- Statements, or faults as "document pointer: message (hint)"; what else goes
-- wrong is thrown.
-- What is left for after the transaction is done here and now, unless it is to
-- stay pending.
CREATE FUNCTION changes.apply(documents jsonb, allowed text[] DEFAULT '{}', dry_run bool DEFAULT false,
	finish bool DEFAULT true, OUT statements text[], OUT faults text[])
LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	left_over text;
BEGIN
	SELECT coalesce(array_agg(a.statement ORDER BY a.step), '{}') INTO statements
	FROM entityapi.apply_manifest(documents, dry_run, allowed) a
	WHERE a.effect IS DISTINCT FROM 'declaration';
	IF finish AND NOT dry_run THEN
		-- on other nodes a transaction has one role
		PERFORM set_config('role', 'entityapi_owner', true);
		FOR left_over IN SELECT p.statement FROM entityapi.pending_steps p LOOP
			EXECUTE replace(left_over, ' CONCURRENTLY', '');
		END LOOP;
		PERFORM set_config('role', 'none', true);
		IF EXISTS (SELECT FROM entityapi.pending_steps) THEN
			RAISE 'still pending: %', (SELECT string_agg(p.statement, '; ') FROM entityapi.pending_steps p);
		END IF;
	END IF;
EXCEPTION WHEN SQLSTATE 'JA400' THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	SELECT array_agg(format('%s %s: %s (%s)', f->>'document', f->>'pointer', f->>'message', f->>'hint'))
	INTO faults FROM jsonb_array_elements(detail::jsonb) f;
END
$$;

-- Rows for every table, as far as its constraints let them in
CREATE FUNCTION changes.fill() RETURNS int LANGUAGE plpgsql SET role = entityapi_owner AS $$
DECLARE
	t record;
	made int := 0;
	columns text;
	items text;
BEGIN
	FOR round IN 1..3 LOOP
		FOR t IN SELECT c.oid, c.oid::regclass::text AS name FROM pg_class c
				WHERE c.oid::regclass::text IN (SELECT name FROM changes.tables()) ORDER BY c.relname LOOP
			SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), string_agg(CASE
				WHEN a.attname = 'tenant_id' THEN '''00000000-0000-0000-0000-0000000000aa''::uuid'
				WHEN k.confrelid IS NOT NULL THEN CASE WHEN random() < 0.3 AND NOT a.attnotnull THEN 'NULL'
					ELSE format('(SELECT id FROM %s ORDER BY random() LIMIT 1)', k.confrelid::regclass) END
				WHEN a.attname = 'id' THEN 'gen_random_uuid()'
				WHEN a.attname = 'deleted_at' THEN CASE WHEN random() < 0.3 THEN 'now()' ELSE 'NULL' END
				WHEN NOT a.attnotnull AND random() < 0.3 THEN 'NULL'
				WHEN a.atttypid = 'uuid'::regtype THEN 'gen_random_uuid()'
				WHEN a.atttypid = 'jsonb'::regtype THEN '''[1]'''
				WHEN a.atttypid = 'bool'::regtype THEN 'true'
				WHEN a.atttypid = 'date'::regtype THEN 'date ''2020-01-01'' + (random() * 100)::int'
				WHEN a.atttypid = 'timestamptz'::regtype THEN 'now() - random() * interval ''100 days'''
				WHEN a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype) THEN '(random() * 500)::int'
				WHEN a.atttypmod > 0 THEN format('left(chr(65 + (random() * 4)::int) || CASE WHEN random() < 0.5 THEN repeat(''x'', (random() * 90)::int) ELSE '''' END, %s)', a.atttypmod - 4)
				ELSE '''some text''' END, ', ' ORDER BY a.attnum)
			INTO columns, items
			FROM pg_attribute a
			LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'f' AND k.conkey[cardinality(k.conkey)] = a.attnum
			WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped;
			FOR i IN 1..4 LOOP
				BEGIN
					EXECUTE format('INSERT INTO %s (%s) SELECT %s', t.name, columns, items);
					made := made + 1;
				EXCEPTION WHEN integrity_constraint_violation OR data_exception OR internal_error THEN
					-- the last is what Citus makes of the others
					NULL;
				END;
			END LOOP;
		END LOOP;
	END LOOP;
	RETURN made;
END
$$;

-- From one manifest to another, which must come to the same as beginning with
-- the other.  Nothing when it does, otherwise what went wrong.
CREATE FUNCTION changes.check_pair(one jsonb, other jsonb, allowed text[], with_rows bool) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	fresh jsonb;
	before jsonb;
	done record;
	step text;
	wrong text;
BEGIN
	step := 'nothing at first';
	done := changes.apply('[]', ARRAY(SELECT name FROM entityapi.entity));
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	step := 'other on an empty database';
	done := changes.apply(other, allowed);
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	fresh := changes.state();

	step := 'nothing left';
	done := changes.apply('[]', allowed);
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	IF EXISTS (SELECT FROM changes.tables()) THEN RETURN 'tables are left over'; END IF;

	step := 'one on an empty database';
	done := changes.apply(one, allowed);
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	before := changes.state();
	IF with_rows THEN PERFORM changes.fill(); END IF;

	step := 'from one to the other';
	done := changes.apply(other, allowed);
	IF done.faults IS NOT NULL AND with_rows THEN
		-- rows may stand against it, but their statements must not say so
		SELECT f INTO wrong FROM unnest(done.faults) f WHERE f ~ 'stand against';
		IF wrong IS NOT NULL THEN RETURN step || ': ' || wrong; END IF;
		wrong := changes.difference(before, changes.state());
		RETURN CASE WHEN wrong IS NOT NULL THEN 'refused, yet changed' || E'\n' || wrong ELSE 'refused' END;
	END IF;
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	wrong := changes.difference(fresh, changes.state());
	IF wrong IS NOT NULL THEN
		RETURN step || E'\n' || wrong || E'\n' || array_to_string(done.statements, E';\n');
	END IF;
	IF EXISTS (SELECT FROM entityapi.apply_manifest(other)) OR
		EXISTS (SELECT FROM entityapi.apply_manifest(entityapi.export_manifest())) THEN
		RETURN 'applied twice';
	END IF;

	step := 'and back';
	done := changes.apply(one, allowed);
	IF done.faults IS NOT NULL AND with_rows THEN
		SELECT f INTO wrong FROM unnest(done.faults) f WHERE f ~ 'stand against';
		RETURN coalesce(step || ': ' || wrong, 'refused');
	END IF;
	IF done.faults IS NOT NULL THEN RETURN step || ': ' || array_to_string(done.faults, E'\n'); END IF;
	wrong := changes.difference(before, changes.state());
	IF wrong IS NOT NULL THEN
		RETURN step || E'\n' || wrong || E'\n' || array_to_string(done.statements, E';\n');
	END IF;

	step := 'there and back, without what is left in between';
	done := changes.apply(other, allowed, finish => false);
	IF done.faults IS NULL THEN
		done := changes.apply(one, allowed);
	END IF;
	IF done.faults IS NOT NULL AND with_rows THEN RETURN 'refused'; END IF;
	wrong := changes.difference(before, changes.state());
	IF wrong IS NOT NULL THEN
		RETURN step || E'\n' || wrong || E'\n' || array_to_string(done.statements, E';\n');
	END IF;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	RETURN step || ': ' || SQLSTATE || ' ' || SQLERRM;
END
$$;
