-- All that was made above belongs to the installer, and is nobody else's.
-- entityapi_owner calls the functions, and reads and writes the tables, but
-- cannot change one of them: whatever a superuser calls, or fires by writing
-- to a table, is what was installed.
--
-- This runs at updates as well, when only what is new has to be seen to, and
-- all that versions before 1.2 gave to entityapi_owner.  What is granted while
-- a script runs counts as the extension's own, with all other rights on the
-- same thing, and dumps leave it out; so what an operator granted is taken
-- from that record again.
DO $$
DECLARE
	installer name;
	object record;
	theirs pg_catalog.oid[];
BEGIN
	SELECT CASE WHEN r.rolsuper THEN r.rolname ELSE CURRENT_USER END
	INTO STRICT installer
	FROM pg_catalog.pg_extension e
	JOIN pg_catalog.pg_roles r ON r.oid = e.extowner
	WHERE e.extname = 'entityapi';
	FOR object IN
		SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass AS class,
			   n.oid AS id, 'SCHEMA' AS kind,
			   n.nspname::text AS name, n.nspowner AS owner,
			   coalesce(n.nspacl,
						pg_catalog.acldefault('n', n.nspowner)) AS acl,
			   '{USAGE}'::text[] AS rights
		FROM pg_catalog.pg_namespace n
		WHERE n.nspname = 'entityapi'
		UNION ALL
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid,
			   CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
			   c.oid::pg_catalog.regclass::text, c.relowner,
			   coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)),
			   CASE WHEN c.relkind = 'v' OR c.relispartition THEN '{SELECT}'
					WHEN c.relname = 'audit' THEN '{SELECT,INSERT}'
					-- written by apply_manifest() alone, and believed
					WHEN c.relname IN ('entity', 'service', 'revision',
									 'past_name')
					THEN '{SELECT}'
					WHEN c.relname = 'moved' THEN '{SELECT}'
					WHEN c.relname = 'announced' THEN '{}'
					-- their one row stays
					WHEN c.relname IN ('everywhere', 'declaring')
					THEN '{SELECT,UPDATE}'
					ELSE '{SELECT,INSERT,UPDATE,DELETE}' END::text[]
		FROM pg_catalog.pg_class c
		WHERE c.relnamespace = 'entityapi'::pg_catalog.regnamespace
		  AND c.relkind IN ('r', 'p', 'S', 'v')
		UNION ALL
		SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 'FUNCTION',
			   p.oid::pg_catalog.regprocedure::text, p.proowner,
			   coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)),
			   CASE WHEN p.prorettype
							= 'pg_catalog.trigger'::pg_catalog.regtype
						 OR p.proname IN (
							'make_audit_partition', 'take_audit_turn',
							'note_purge', 'guard_audit', 'rekey_audit',
							'key_audit',
							'distribute_own', 'distribute_audit',
							'undistribute_own', 'take_back',
							'move_own_ahead',
							'prepare_node', 'pin_installer_path',
							'drop_own_references',
							'list_citus_faults', 'check_distributed',
							'list_own_tables', 'list_audit_tables',
							'audit_is_distributed', 'role_on_nodes',
							'await_replication', 'guard_moves',
							'unguard_moves', 'guard_is_member',
							'announce', 'announce_here', 'declaring_here',
							'silence_role', 'guard_declarations',
							'hold_commits', 'create_restore_point',
							'describe_here', 'columns_of', 'count_here',
							'ask_as_owner', 'compare_copies', 'compare_rows',
							'compare_descriptions', 'compare_nodes',
							'require_coordinator')
					THEN '{}'
					ELSE '{EXECUTE}' END::text[]
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
		  AND EXISTS (SELECT FROM pg_catalog.pg_depend m
					  JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
					  WHERE m.classid
							= 'pg_catalog.pg_proc'::pg_catalog.regclass
						AND m.objid = p.oid AND m.deptype = 'e'
						AND m.refclassid
							= 'pg_catalog.pg_extension'::pg_catalog.regclass
						AND e.extname = 'entityapi')
	LOOP
		SELECT pg_catalog.array_agg(a.grantee) INTO theirs
		FROM pg_catalog.aclexplode(object.acl) a
		WHERE a.grantee <> 0 AND a.grantee <> object.owner
		  AND a.grantee <> 'entityapi_owner'::pg_catalog.regrole
		  AND NOT EXISTS (SELECT FROM pg_catalog.pg_init_privs i,
						  pg_catalog.aclexplode(i.initprivs) o
						  WHERE i.classoid = object.class
							AND i.objoid = object.id AND i.objsubid = 0
							AND o.grantee = a.grantee);
		IF object.owner <> installer::pg_catalog.regrole THEN
			EXECUTE pg_catalog.format('ALTER %s %s OWNER TO %I', object.kind,
									  object.name, installer);
		END IF;
		IF object.owner <> installer::pg_catalog.regrole
			OR EXISTS (SELECT FROM pg_catalog.aclexplode(object.acl) a
					   WHERE a.grantee = 0) THEN
			EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM PUBLIC',
									  object.kind, object.name);
		END IF;
		-- who could hang something onto a table would have it run for others
		IF object.kind = 'TABLE' THEN
			EXECUTE coalesce((
				SELECT pg_catalog.string_agg(
						pg_catalog.format(
							'REVOKE %s ON %s FROM %s CASCADE',
							g.rights, object.name,
							CASE g.grantee WHEN 0 THEN 'PUBLIC'
								ELSE g.grantee::pg_catalog.regrole::text END),
						'; ')
				FROM (
					SELECT a.privilege_type, a.grantee
					FROM pg_catalog.aclexplode(object.acl) a
					WHERE a.privilege_type NOT IN ('SELECT', 'INSERT',
												   'UPDATE', 'DELETE')
					  AND a.grantee NOT IN (0, object.owner)
					UNION ALL
					SELECT pg_catalog.format('REFERENCES (%I)', t.attname),
						   a.grantee
					FROM pg_catalog.pg_attribute t,
						pg_catalog.aclexplode(t.attacl) a
					WHERE t.attrelid = object.id AND NOT t.attisdropped
					  AND a.privilege_type = 'REFERENCES'
					  AND a.grantee NOT IN (object.owner,
											installer::pg_catalog.regrole))
					g (rights, grantee)), 'SELECT');
		END IF;
		IF object.kind = 'SCHEMA' THEN
			EXECUTE coalesce((
				SELECT 'REVOKE CREATE ON SCHEMA entityapi FROM '
					|| pg_catalog.string_agg(
							DISTINCT a.grantee::pg_catalog.regrole::text, ', ')
					|| ' CASCADE'
				FROM pg_catalog.aclexplode(object.acl) a
				WHERE a.privilege_type = 'CREATE' AND a.grantee <> 0
				  AND a.grantee <> object.owner), 'SELECT');
		END IF;
		IF object.rights <> '{}'
			AND (object.owner = 'entityapi_owner'::pg_catalog.regrole
				 OR NOT object.rights <@ ARRAY(
					SELECT a.privilege_type
					FROM pg_catalog.aclexplode(object.acl) a
					WHERE a.grantee = 'entityapi_owner'::pg_catalog.regrole))
		THEN
			EXECUTE pg_catalog.format('GRANT %s ON %s %s TO entityapi_owner',
				pg_catalog.array_to_string(object.rights, ', '), object.kind,
				object.name);
		END IF;

		-- the months of the audit log are no members: all rights are in dumps
		DELETE FROM pg_catalog.pg_init_privs i
		WHERE i.classoid = object.class AND i.objoid = object.id
		  AND object.kind = 'TABLE'
		  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend m
						  WHERE m.classid = object.class
							AND m.objid = object.id AND m.deptype = 'e');
		UPDATE pg_catalog.pg_init_privs i
		SET initprivs = ARRAY(SELECT o FROM pg_catalog.unnest(i.initprivs) o
							  WHERE (SELECT a.grantee
									 FROM pg_catalog.aclexplode(ARRAY[o]) a
									 LIMIT 1) <> ALL (theirs))
		WHERE i.classoid = object.class AND i.objoid = object.id
		  AND i.objsubid = 0 AND theirs IS NOT NULL;
	END LOOP;
END
$$;

GRANT EXECUTE ON FUNCTION entityapi.handle(text, text, jsonb, bytea, inet),
	entityapi.handle(bytea), entityapi.housekeep()
	TO entityapi_client;

GRANT EXECUTE ON FUNCTION
	entityapi.current_tenant(),
	entityapi.caller_reads(text), entityapi.caller_bypasses(text),
	entityapi.readable_tenant(text), entityapi.caller_sees(text, uuid),
	entityapi.caller_boolean(text, text), entityapi.caller_number(text, text),
	entityapi.caller_text(text, text), entityapi.caller_uuid(text, text),
	entityapi.caller_date(text, text), entityapi.caller_datetime(text, text),
	entityapi.caller_texts(text, text), entityapi.caller_known(text, text)
	TO entityapi_reader;
