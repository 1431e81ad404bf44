-- First of all, in every install and update script: nobody else's objects are
-- found by a name from here on.  CREATE EXTENSION has put the schema, and that
-- of pgcrypto, onto the path; with nothing but pg_catalog there, and pg_temp,
-- where neither functions nor operators are looked for, every name and every
-- operator below is PostgreSQL's, exact match or not.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- Every request would be refused in a database of another encoding.
DO $$
BEGIN
	IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
		RAISE EXCEPTION 'entityapi needs a database with encoding UTF8'
			USING ERRCODE = 'feature_not_supported',
				  HINT = 'Make the database with "createdb -T template0 '
						 '-E UTF8".';
	END IF;
END
$$;

-- Nor is anything taken over that was there before.  A dump makes the schema
-- before the extension; it belongs to who may have made it then, and is empty.
DO $$
DECLARE
	found text;
BEGIN
	SELECT r.rolname INTO found
	FROM pg_catalog.pg_namespace n
	JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
	WHERE n.nspname = 'entityapi' AND NOT r.rolsuper
	  AND r.rolname NOT IN (CURRENT_USER, 'entityapi_owner');
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'schema entityapi belongs to %, who could change what superusers '
			'run', found
			USING ERRCODE = 'insufficient_privilege',
				  HINT = 'Drop the schema, or give it to a superuser.';
	END IF;

	-- Trusted extensions belong to whoever made them, and who drops one takes
	-- all along that needs it.  The database's owner could drop that as well.
	SELECT pg_catalog.string_agg(
			pg_catalog.format('%I of %I', e.extname, r.rolname), ', '
			ORDER BY e.extname)
	INTO found
	FROM pg_catalog.pg_extension e
	JOIN pg_catalog.pg_roles r ON r.oid = e.extowner
	JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
	WHERE e.extname IN ('pgcrypto', 'plpgsql') AND NOT r.rolsuper
	  AND r.oid <> d.datdba;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'who owns an extension that this one needs could drop the service '
			'with it: %', found
			USING ERRCODE = 'insufficient_privilege',
				  HINT = 'Drop that extension and make it as a superuser, or '
						 'give it to one: '
						 'REASSIGN OWNED BY the role TO a superuser.';
	END IF;

	-- all that a schema holds depends on it: members apart, and the months of
	-- the audit log, which are made at run time
	SELECT pg_catalog.string_agg(
			pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid), ', '
			ORDER BY d.classid, d.objid)
	INTO found
	FROM pg_catalog.pg_depend d
	WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
	  AND d.refobjid = 'entityapi'::pg_catalog.regnamespace
	  AND d.deptype = 'n'
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_extension e
		WHERE e.extname IN ('entityapi', 'pgcrypto')
		  AND (d.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			   AND d.objid = e.oid
			   OR EXISTS (
			SELECT FROM pg_catalog.pg_depend m
			WHERE m.classid = d.classid AND m.objid = d.objid
			  AND m.deptype = 'e'
			  AND m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			  AND m.refobjid = e.oid)))
	  AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		JOIN pg_catalog.pg_depend m ON m.classid = d.classid
			AND m.objid = i.inhparent AND m.deptype = 'e'
		JOIN pg_catalog.pg_extension e
			ON m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
			AND m.refobjid = e.oid
		WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
		  AND i.inhrelid = d.objid AND c.relispartition
		  AND c.relname ~ '^audit_[0-9]{4}_[0-9]{2}$'
		  AND e.extname = 'entityapi');
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'schema entityapi holds what is no part of the extension: %', found
			USING ERRCODE = 'duplicate_object',
				  HINT = 'Move it elsewhere or drop it.';
	END IF;
END
$$;

-- At an update: before 1.2 the tables belonged to entityapi_owner, whose
-- members could hang onto them what runs as whoever uses them; from here on
-- that would be a superuser.  What they have of triggers, rules, policies,
-- children, foreign keys, expressions and types is ours or PostgreSQL's, and
-- all of it is where it was made, or somebody has to look.  This comes before
-- anything is changed, as that may run expressions; and nothing can be added
-- meanwhile.
--
-- The locks are those that changes need: raising one later would deadlock
-- with a request that waits for it already.  Requests go on meanwhile, each
-- with locks of its own and in its own order; those of 1.0 and 1.1 wait for
-- two seconds, and then fail.  So all locks together are waited for less than
-- one, after which a session that waits would find a deadlock, and if they are
-- not to be had, tried anew when others have had their turn.
DO $$
DECLARE
	before CONSTANT text := pg_catalog.current_setting('lock_timeout');
	until timestamptz;
	held pg_catalog.regclass;
	found text;
BEGIN
	FOR attempt IN 1 .. 60 LOOP
		BEGIN
			-- in the end, somebody else may fail
			until := pg_catalog.clock_timestamp()
				+ CASE WHEN attempt <= 50 THEN interval '900ms'
					   ELSE interval '10s' END;
			FOR held IN
				SELECT c.oid FROM pg_catalog.pg_class c
				JOIN pg_catalog.pg_depend m
					ON m.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
					AND m.objid = c.oid AND m.deptype = 'e'
				JOIN pg_catalog.pg_extension e
					ON m.refclassid =
						'pg_catalog.pg_extension'::pg_catalog.regclass
					AND m.refobjid = e.oid
				WHERE e.extname = 'entityapi' AND c.relkind IN ('r', 'p')
				-- as most requests do: who asks, what for, the log
				ORDER BY c.relname NOT IN ('session', 'refresh_token',
										   'personal_api_key',
										   'service_account'),
						 c.relname <> 'account', c.relname = 'audit', c.oid
			LOOP
				PERFORM pg_catalog.set_config('lock_timeout',
					greatest(1, (1000 * extract(epoch FROM until
						- pg_catalog.clock_timestamp()))::int)::text, true);
				EXECUTE pg_catalog.format(
					'LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', held);
			END LOOP;
			PERFORM pg_catalog.set_config('lock_timeout', before, true);
			EXIT;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF attempt = 60 THEN
				RAISE EXCEPTION 'others have % in use for too long', held
					USING ERRCODE = 'lock_not_available',
						  HINT = 'pg_locks tells who: end that, or update '
								 'when it is over.';
			END IF;
		END;
		PERFORM pg_catalog.pg_sleep(0.5);
	END LOOP;

	WITH member AS (
		SELECT m.classid, m.objid
		FROM pg_catalog.pg_depend m
		JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
		WHERE m.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
		  AND m.deptype = 'e' AND e.extname = 'entityapi'
	), month AS (
		SELECT i.inhrelid AS id
		FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = pg_catalog.to_regclass('entityapi.audit')
		  AND c.relispartition
	), relation AS (
		SELECT c.oid AS id, c.relkind AS kind
		FROM pg_catalog.pg_class c
		WHERE c.oid IN (
			SELECT objid FROM member
			WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass
			UNION SELECT id FROM month)
	), expression AS (
		SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass AS class,
			   d.oid AS id,
			   pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS text
		FROM pg_catalog.pg_attrdef d JOIN relation r ON r.id = d.adrelid
		UNION ALL
		SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid,
			   pg_catalog.pg_get_expr(c.conbin, c.conrelid)
		FROM pg_catalog.pg_constraint c JOIN relation r ON r.id = c.conrelid
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid,
			   pg_catalog.concat(
					pg_catalog.pg_get_expr(i.indexprs, i.indrelid),
					pg_catalog.pg_get_expr(i.indpred, i.indrelid))
		FROM pg_catalog.pg_index i JOIN relation r ON r.id = i.indrelid
	), stranger AS (
		SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass AS class,
			   t.oid AS id
		FROM pg_catalog.pg_trigger t JOIN relation r ON r.id = t.tgrelid
		WHERE NOT t.tgisinternal
		  AND (t.tgqual IS NOT NULL
			   AND pg_catalog.pg_get_triggerdef(t.oid)
				   !~ (' FOR EACH ROW'
					   ' WHEN [(]entityapi[.]copies_accounts[(][)][)]'
					   ' EXECUTE FUNCTION entityapi[.]copy_account[(][)]$')
			   OR t.tgfoid NOT IN (SELECT objid FROM member))
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
		WHERE i.inhparent IN (SELECT id FROM relation)
		  AND i.inhrelid NOT IN (SELECT id FROM month)
		   OR i.inhrelid IN (SELECT id FROM relation)
			  AND i.inhparent <> pg_catalog.to_regclass('entityapi.audit')
		UNION ALL
		SELECT m.classid, m.objid
		FROM (SELECT classid, objid FROM member
			  UNION
			  SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, id
			  FROM month) m
		WHERE (pg_catalog.pg_identify_object(m.classid, m.objid, 0)).schema
			  <> 'entityapi'
		UNION ALL
		-- a table that refers to ours lets its owner in on what is done to
		-- ours
		SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid
		FROM pg_catalog.pg_constraint f
		JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
		JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
		WHERE f.contype = 'f'
		  AND (f.confrelid IN (SELECT id FROM relation)
			   AND f.conrelid NOT IN (SELECT id FROM relation)
			   AND NOT o.rolsuper
			   OR f.conrelid IN (SELECT id FROM relation)
			   AND f.confrelid NOT IN (SELECT id FROM relation))
		UNION ALL
		-- a name right before a parenthesis is a call
		SELECT x.class, x.id FROM expression x
		WHERE pg_catalog.regexp_replace(
				x.text, '[[:<:]](jsonb_typeof|substr)[(]', '', 'g')
			  ~ '["[:alnum:]_][(]'
		UNION ALL
		-- what is PostgreSQL's own is on no record of dependencies
		SELECT d.classid, d.objid
		FROM pg_catalog.pg_depend d
		WHERE (d.classid, d.objid) IN (
				SELECT class, id FROM expression
				UNION ALL
				SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, id
				FROM relation)
		  AND d.refclassid IN (
				'pg_catalog.pg_type'::pg_catalog.regclass,
				'pg_catalog.pg_proc'::pg_catalog.regclass,
				'pg_catalog.pg_operator'::pg_catalog.regclass,
				'pg_catalog.pg_opclass'::pg_catalog.regclass,
				'pg_catalog.pg_collation'::pg_catalog.regclass)
		  AND (d.refclassid, d.refobjid) NOT IN (
				SELECT classid, objid FROM member)
	)
	SELECT pg_catalog.string_agg(
			DISTINCT pg_catalog.pg_describe_object(s.class, s.id, 0), ', ')
	INTO found
	FROM stranger s;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION
			'the tables of the extension have what is no part of it: %', found
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  HINT = 'Drop it, then update.';
	END IF;
END
$$;
