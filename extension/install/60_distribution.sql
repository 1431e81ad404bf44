-- A cluster of Citus, where the Service document says so: what
-- apply_manifest() does with the tables of the extension, the installer's
--
-- Identity and declarations are there whole on every node (reference tables).
-- The audit log is distributed by tenant, and every table of an entity with
-- tenants lies beside it; a record of no tenant has the UUID of zeros.
-- Nothing of this exists without Citus, so its functions are named at run time
-- only.
--
-- Nobody but the installer calls these.

-- The tables of the extension by themselves, that is without the months of the
-- audit log, and without what each node has for itself
CREATE FUNCTION entityapi.list_own_tables() RETURNS SETOF regclass
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT c.oid::regclass
		FROM pg_class c
		JOIN pg_depend m ON m.classid = 'pg_class'::regclass
			AND m.objid = c.oid AND m.deptype = 'e'
			AND m.refclassid = 'pg_extension'::regclass
		JOIN pg_extension e ON e.oid = m.refobjid
		WHERE e.extname = 'entityapi' AND c.relkind = 'r'
		  AND NOT c.relispartition AND c.relname <> 'announced'
		ORDER BY c.relname COLLATE "C"
	$$;

-- The audit log and its partitions
CREATE FUNCTION entityapi.list_audit_tables() RETURNS SETOF regclass
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT 'entityapi.audit'::regclass
		UNION ALL
		(SELECT i.inhrelid::regclass
		 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE i.inhparent = 'entityapi.audit'::regclass
		 ORDER BY c.relname COLLATE "C")
	$$;

-- What stands against a distribution, with tables in these schemas.  As it
-- says what other nodes are like, it is asked before anything is changed.
CREATE FUNCTION entityapi.list_citus_faults(schemas text[], OUT message text,
											OUT hint text)
	RETURNS SETOF record
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	node record;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
		RETURN QUERY VALUES ('Citus is not installed in this database',
			'CREATE EXTENSION citus, in this database of each node');
		RETURN;
	END IF;
	IF current_setting('citus.shard_count', true) IS NULL THEN
		RETURN QUERY VALUES ('Citus is not loaded',
			'add citus to shared_preload_libraries, in the first place');
		RETURN;
	END IF;
	IF NOT citus_is_coordinator() THEN
		RETURN QUERY VALUES ('this node is not the coordinator',
			'apply where the others were added with citus_add_node()');
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0) THEN
		RETURN QUERY VALUES ('the coordinator is no node of the cluster',
			'SELECT citus_set_coordinator_host(), with its name as the others '
			'know it');
		RETURN;
	END IF;
	IF entityapi.audit_is_distributed() THEN
		RETURN QUERY
			SELECT format('the role %s may not log in, as Citus does on each '
						  'node', r.rolname),
				   format('ALTER ROLE %I LOGIN', r.rolname)
			FROM pg_roles r
			WHERE r.rolname IN ('entityapi_owner', 'entityapi_reader')
			  AND NOT r.rolcanlogin
			ORDER BY r.rolname;
	END IF;
	FOR node IN
		SELECT n.nodename || ':' || n.nodeport AS name, r.success, r.result,
			   r.result::jsonb ->> 'walLevel' AS wal_level,
			   r.result::jsonb ->> 'version' AS version,
			   CASE WHEN n.groupid <> 0 THEN r.result::jsonb -> 'schemas' END
					AS schemas
		FROM (
			SELECT a.nodeid, a.success,
				   CASE WHEN a.success THEN a.result
						ELSE jsonb_build_object('error', a.result)::text
				   END AS result
			FROM run_command_on_all_nodes(format(
				$c$SELECT pg_catalog.jsonb_build_object(
					'walLevel', pg_catalog.current_setting('wal_level'),
					'version', (SELECT extversion
						FROM pg_catalog.pg_extension
						WHERE extname OPERATOR(pg_catalog.=) 'entityapi'),
					'schemas', (SELECT coalesce(
							pg_catalog.jsonb_object_agg(n.nspname, o.rolname),
							'{}')
						FROM pg_catalog.pg_namespace n
						JOIN pg_catalog.pg_roles o
							ON o.oid OPERATOR(pg_catalog.=) n.nspowner
						WHERE n.nspname OPERATOR(pg_catalog.=)
								ANY (%L::pg_catalog.text[])
						  AND NOT o.rolsuper
						  AND o.rolname OPERATOR(pg_catalog.<>) ALL
								('{entityapi_owner,pg_database_owner}')))$c$,
				schemas)) a) r
		JOIN pg_dist_node n USING (nodeid)
		ORDER BY n.nodename, n.nodeport
	LOOP
		IF NOT node.success THEN
			RETURN QUERY VALUES (
				format('the node %s does not answer: %s', node.name,
					   node.result::jsonb ->> 'error'), NULL);
			CONTINUE;
		END IF;
		IF node.version IS DISTINCT FROM entityapi.version() THEN
			RETURN QUERY VALUES (
				format('the node %s has %s', node.name,
					   coalesce('entityapi ' || node.version,
								'no extension entityapi')),
				'install the same version there, and update the extension');
		END IF;
		IF node.wal_level <> 'logical' THEN
			RETURN QUERY VALUES (
				format('wal_level is %s on the node %s, and no tenant could '
					   'be moved while requests go on', node.wal_level,
					   node.name),
				'ALTER SYSTEM SET wal_level = logical, and restart it');
		END IF;
		RETURN QUERY
			SELECT format('on the node %s the schema "%s" belongs to %s, who '
						  'could put other tables in the place of the '
						  'service''s', node.name, s.key, s.value),
				   format('ALTER SCHEMA %I OWNER TO entityapi_owner, there',
						  s.key)
			FROM jsonb_each_text(node.schemas) s
			ORDER BY s.key;
	END LOOP;
END
$$;

-- Citus names functions, its own among them, without their schema, and sends
-- that to sessions of superusers on other nodes.  By default these look first
-- into a schema of their role's name, which whoever may create schemas can
-- make.
CREATE FUNCTION entityapi.pin_installer_path() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	role name;
BEGIN
	FOR role IN
		SELECT DISTINCT r.rolname
		FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner
		JOIN pg_database d ON d.datname = current_database()
		WHERE e.extname IN ('citus', 'entityapi') AND r.rolsuper
		  AND NOT EXISTS (SELECT
						  FROM pg_db_role_setting s, unnest(s.setconfig) c
						  WHERE s.setrole IN (0, r.oid)
							AND s.setdatabase IN (0, d.oid)
							AND starts_with(c, 'search_path=')
							AND strpos(c, '$user') = 0)
	LOOP
		EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = public',
					   role, current_database());
	END LOOP;
END
$$;

-- A node that has been given the extension by Citus has its tables as well.
-- Their rows come from Citus by and by, and so do their foreign keys and the
-- triggers of the audit log and of accounts.
CREATE FUNCTION entityapi.prepare_node() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	key record;
BEGIN
	PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
	PERFORM entityapi.guard_moves();
	PERFORM entityapi.pin_installer_path();
	IF EXISTS (SELECT FROM pg_dist_partition
			   WHERE logicalrelid = 'entityapi.account'::regclass) THEN
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM entityapi.account)
		OR EXISTS (SELECT FROM entityapi.revision)
		OR EXISTS (SELECT FROM entityapi.audit) THEN
		RAISE EXCEPTION 'this node has a service of its own'
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
	FOR key IN
		SELECT k.conrelid::regclass AS own, k.conname
		FROM pg_constraint k
		WHERE k.contype = 'f'
		  AND k.conrelid IN (SELECT entityapi.list_own_tables())
	LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.own,
					   key.conname);
	END LOOP;
	FOR key IN
		SELECT t.tgrelid::regclass AS own, t.tgname
		FROM pg_trigger t
		WHERE t.tgname IN ('append_only', 'copy_account')
		  AND t.tgrelid IN (SELECT entityapi.list_audit_tables()
							UNION ALL SELECT 'entityapi.account'::regclass)
	LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', key.tgname, key.own);
	END LOOP;
	DELETE FROM entityapi.common_password;
END
$$;

-- Foreign keys between the tables of the extension; Citus takes a table of
-- these without any.  Returns the statements that make them again.
CREATE FUNCTION entityapi.drop_own_references() RETURNS text[]
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	key record;
	made text[] := '{}';
BEGIN
	FOR key IN
		SELECT k.conrelid::regclass AS own, k.conname,
			   pg_get_constraintdef(k.oid) AS definition
		FROM pg_constraint k
		WHERE k.contype = 'f'
		  AND k.conrelid IN (SELECT entityapi.list_own_tables())
		ORDER BY k.conrelid::regclass::text COLLATE "C",
			k.conname COLLATE "C"
	LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.own,
					   key.conname);
		made := made || format('ALTER TABLE %s ADD CONSTRAINT %I %s', key.own,
							   key.conname, key.definition);
	END LOOP;
	RETURN made;
END
$$;

-- The tables of the extension to Citus.  Citus refuses to have two roles
-- change what lies together in one transaction, and those of entities are
-- their owner's.  So this is a transaction of its own, before that of a
-- change, and in between the service answers nothing.  And as tables without
-- a tenant, which are their owner's, lie with the declarations, who changes
-- the ones has to write the others: what he may write there is said in
-- 60_declarations.sql.
--
-- Citus runs statements on other nodes as who has asked for them, so it has to
-- log in as these roles.  They get no password: who gets in is said by
-- pg_hba.conf.
CREATE FUNCTION entityapi.distribute_own() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	SET lock_timeout = '5s'
	AS $$
DECLARE
	own regclass;
	key text;
	keys text[];
	copies text;
	failed text;
BEGIN
	IF EXISTS (SELECT FROM pg_dist_partition
			   WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
		RETURN;
	END IF;
	PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true),
			set_config('citus.enable_unsafe_triggers', 'on', true),
			entityapi.carry_lock_timeout();
	FOR own IN SELECT entityapi.list_own_tables()
			   UNION ALL SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', own);
	END LOOP;
	SELECT string_agg(format('%s:%s: %s', n.nodename, n.nodeport, r.result),
					  ', ') INTO failed
	FROM run_command_on_workers('SELECT entityapi.prepare_node()') r
	JOIN pg_dist_node n USING (nodename, nodeport)
	WHERE NOT r.success;
	IF failed IS NOT NULL THEN
		RAISE EXCEPTION 'a node is not fit for the service: %', failed
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;

	PERFORM entityapi.guard_moves();
	PERFORM entityapi.pin_installer_path();
	UPDATE entityapi.mapped_role
	SET node_oids = entityapi.role_on_nodes(role);

	-- no request makes a month any more
	PERFORM entityapi.extend_audit(now(), 2);
	ALTER ROLE entityapi_owner LOGIN;
	ALTER ROLE entityapi_reader LOGIN;

	-- Citus names nothing of pg_catalog by its schema.  Where a path of the
	-- database has others before that, they would get what it sends.
	ALTER ROLE entityapi_owner SET search_path = pg_catalog, pg_temp;
	ALTER ROLE entityapi_reader SET search_path = pg_catalog, pg_temp;

	-- rows that have no key go to a node that is added like all others
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		IF NOT EXISTS (SELECT FROM pg_constraint k
					   WHERE k.conrelid = own AND k.contype = 'p') THEN
			EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', own);
		END IF;
	END LOOP;

	-- Citus puts values into the text of statements.  What fails is told to
	-- the node that has sent it, and is in the log there, without them.  Of
	-- one that is killed the server logs what it did, as far as it knows.
	ALTER ROLE entityapi_owner SET track_activities = off;
	PERFORM entityapi.silence_role(r.rolname)
	FROM pg_roles r
	WHERE r.rolname IN ('entityapi_owner', 'entityapi_reader')
	   OR EXISTS (SELECT FROM entityapi.mapped_role m
				  WHERE m.role = r.rolname AND m.role_oid = r.oid);
	keys := entityapi.drop_own_references();
	PERFORM entityapi.guard_declarations(true);

	-- accounts go to nodes that do not know the declarations yet
	SELECT pg_get_triggerdef(t.oid) INTO STRICT copies
	FROM pg_trigger t
	WHERE t.tgrelid = 'entityapi.account'::regclass
	  AND t.tgname = 'copy_account';
	DROP TRIGGER copy_account ON entityapi.account;
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		PERFORM create_reference_table(own);
		PERFORM truncate_local_data_after_distributing_table(own);
	END LOOP;
	FOREACH key IN ARRAY keys LOOP
		EXECUTE key;
	END LOOP;
	EXECUTE copies;
	PERFORM entityapi.distribute_audit();
	GRANT INSERT, UPDATE, DELETE ON entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name TO entityapi_owner;
END
$$;

-- What others send in the name of a role stays out of the logs, as do its own
-- statements.
CREATE FUNCTION entityapi.silence_role(role text) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	EXECUTE format('ALTER ROLE %I SET log_min_messages = fatal', role);
	EXECUTE format('ALTER ROLE %I SET log_min_error_statement = panic', role);
END
$$;

-- The oids that a role has, by the groups of nodes
CREATE FUNCTION entityapi.role_on_nodes(role text) RETURNS jsonb
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	answers record;
BEGIN
	SELECT jsonb_object_agg(n.groupid, r.result) AS oids,
		   string_agg(n.nodename || ':' || n.nodeport, ', ')
				FILTER (WHERE NOT r.success) AS silent
	INTO answers
	FROM run_command_on_all_nodes(
			format('SELECT oid FROM pg_catalog.pg_roles'
				   ' WHERE rolname OPERATOR(pg_catalog.=) %L', role)) r
	JOIN pg_dist_node n USING (nodeid);
	IF answers.silent IS NOT NULL THEN
		RAISE EXCEPTION 'these nodes do not tell of the role %: %', role,
			answers.silent
			USING ERRCODE = 'connection_failure';
	END IF;
	RETURN answers.oids;
END
$$;

-- The one or the other by another session, as the caller has a transaction of
-- his own.  Where it and requests wait for each other all the same, Citus ends
-- the one that began later, as a rule this one, and tells so in words.  It
-- tries again when those that were in its way are through.
CREATE FUNCTION entityapi.move_own_ahead(distribute boolean) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	done record;
BEGIN
	FOR attempt IN 1 .. 5 LOOP
		SELECT r.success, r.result INTO done
		FROM run_command_on_coordinator(
				CASE WHEN distribute THEN 'SELECT entityapi.distribute_own()'
					ELSE 'SELECT entityapi.undistribute_own()' END) r;
		EXIT WHEN done.success OR done.result !~ 'deadlock';
		PERFORM pg_sleep(0.5);
	END LOOP;
	IF NOT done.success THEN
		RAISE EXCEPTION 'the tables of the extension stay where they are: %',
			done.result
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
END
$$;

-- Each record has a tenant then, and is found by it first.
CREATE FUNCTION entityapi.distribute_audit() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	part regclass;
BEGIN
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('DROP TRIGGER append_only ON %s', part);
	END LOOP;
	PERFORM entityapi.key_audit(true);
	PERFORM create_distributed_table(
		'entityapi.audit', 'tenant_id',
		colocate_with => coalesce((
			SELECT p.logicalrelid::text
			FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
			WHERE p.partmethod = 'h'
			  AND c.relowner = 'entityapi_owner'::regrole
			LIMIT 1), 'none'));
	PERFORM truncate_local_data_after_distributing_table('entityapi.audit');
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		PERFORM entityapi.guard_audit(part);
	END LOOP;

	-- no rows: a key that Citus makes at the end of every move, for
	-- await_replication(), and by which the platform's node is asked
	CREATE TABLE entityapi.moved (
		tenant_id uuid PRIMARY KEY REFERENCES entityapi.moved
	);
	GRANT SELECT ON entityapi.moved TO entityapi_owner;
	PERFORM create_distributed_table('entityapi.moved', 'tenant_id',
									 colocate_with => 'entityapi.audit');
END
$$;

-- The keys of the log with its records: by tenant, those of none having the
-- UUID of zeros, or by time, those having null.
CREATE FUNCTION entityapi.key_audit(by_tenant boolean) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	nil CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
	part regclass;
BEGIN
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		IF by_tenant THEN
			EXECUTE format('UPDATE %s SET tenant_id = $1'
						   ' WHERE tenant_id IS NULL', part) USING nil;
			PERFORM entityapi.rekey_audit(part, '(tenant_id, at, id)',
										  '(at, id)');
		ELSE
			PERFORM entityapi.rekey_audit(part, '(at, id)',
										  '(tenant_id, at, id)');
		END IF;
	END LOOP;
	IF by_tenant THEN
		ALTER TABLE entityapi.audit ALTER COLUMN tenant_id SET NOT NULL;
		RETURN;
	END IF;
	ALTER TABLE entityapi.audit ALTER COLUMN tenant_id DROP NOT NULL;
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		-- since PostgreSQL 18 the key has left a constraint of its own
		EXECUTE format('ALTER TABLE %s ALTER COLUMN tenant_id DROP NOT NULL',
					   part);
		EXECUTE format('UPDATE %s SET tenant_id = NULL WHERE tenant_id = $1',
					   part) USING nil;
	END LOOP;
END
$$;

-- Another primary key of a partition, in the place of an index on the same
-- columns, and an index in the place of the key that it has.
CREATE FUNCTION entityapi.rekey_audit(part regclass, key text, other text)
	RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text;
BEGIN
	SELECT c.conname INTO STRICT name
	FROM pg_constraint c WHERE c.conrelid = part AND c.contype = 'p';
	EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', part, name);
	EXECUTE (
		SELECT string_agg('DROP INDEX ' || i.indexrelid::regclass, '; ')
		FROM pg_index i
		WHERE i.indrelid = part AND i.indpred IS NULL AND NOT i.indisunique
		  AND pg_get_indexdef(i.indexrelid) LIKE '% USING btree ' || key);
	EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I PRIMARY KEY %s', part,
				   name, key);
	EXECUTE format('CREATE INDEX ON %s %s', part, other);
END
$$;

-- The way back.  Dropped and made anew, as undistribute_table() does it, a
-- table would be no part of the extension any more; so its rows are put aside,
-- Citus gives the table up, and they are put back.
CREATE FUNCTION entityapi.undistribute_own() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET session_replication_role = 'replica'
	SET client_min_messages = 'warning'
	SET lock_timeout = '5s'
	AS $$
DECLARE
	part regclass;
	own regclass;
	key text;
	keys text[];
BEGIN
	IF NOT EXISTS (SELECT FROM pg_dist_partition
				   WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
		RETURN;
	END IF;
	PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true),
			set_config('citus.enable_unsafe_triggers', 'on', true),
			entityapi.carry_lock_timeout();

	-- A request reads parts of these first, and wants the log last.  So it
	-- comes to its end before the log is locked, and none begins any more.  A
	-- change of the table locks its parts on all nodes.
	FOREACH own IN ARRAY '{entityapi.service, entityapi.session,
		entityapi.refresh_token, entityapi.personal_api_key,
		entityapi.service_account, entityapi.account}'::regclass[]
	LOOP
		SELECT a.attname INTO STRICT key
		FROM pg_index i JOIN pg_attribute a
			ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indrelid = own AND i.indisprimary;
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', own,
			key);
	END LOOP;
	FOR own IN SELECT entityapi.list_own_tables()
			   UNION ALL SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', own);
	END LOOP;
	REVOKE INSERT, UPDATE, DELETE ON entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name FROM entityapi_owner;
	keys := entityapi.drop_own_references();
	FOR own IN SELECT entityapi.list_own_tables() LOOP
		PERFORM entityapi.take_back(own);
	END LOOP;
	PERFORM entityapi.guard_declarations(false);
	FOREACH key IN ARRAY keys LOOP
		EXECUTE key;
	END LOOP;

	PERFORM entityapi.unguard_moves();

	-- all nodes forget it: Citus has a trigger that says so
	PERFORM set_config('session_replication_role', 'origin', true);
	DROP TABLE entityapi.moved;
	PERFORM set_config('session_replication_role', 'replica', true);

	-- partitions before what they belong to
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		EXECUTE format('DROP TRIGGER append_only ON %s', part);
		EXECUTE format('DROP TRIGGER append_only_all ON %s', part);
	END LOOP;
	FOR part IN SELECT entityapi.list_audit_tables() OFFSET 1 LOOP
		PERFORM entityapi.take_back(part);
	END LOOP;
	PERFORM entityapi.take_back('entityapi.audit');
	PERFORM entityapi.key_audit(false);
	FOR part IN SELECT entityapi.list_audit_tables() LOOP
		PERFORM entityapi.guard_audit(part);
	END LOOP;
END
$$;

CREATE FUNCTION entityapi.take_back(own regclass) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text := (SELECT c.relname FROM pg_class c WHERE c.oid = own);
	holds_rows bool := (SELECT c.relkind = 'r' FROM pg_class c
						WHERE c.oid = own);
	key name;
BEGIN
	IF holds_rows THEN
		EXECUTE format('CREATE TABLE entityapi.rows_put_aside AS'
					   ' SELECT * FROM %s', own);
	END IF;
	PERFORM master_remove_distributed_table_metadata_from_workers(
				own, 'entityapi', name),
			citus_drop_all_shards(own, 'entityapi', name, false),
			master_remove_partition_metadata(own, 'entityapi', name);
	FOR key IN SELECT t.tgname FROM pg_trigger t
			   WHERE t.tgrelid = own AND t.tgname ~ '^truncate_trigger_' LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', key, own);
	END LOOP;
	IF holds_rows THEN
		EXECUTE format('INSERT INTO %s SELECT * FROM'
					   ' entityapi.rows_put_aside', own);
		DROP TABLE entityapi.rows_put_aside;
	END IF;
END
$$;

-- Nothing of the service may be left that is on this node alone, or as it was
-- before: the tables of the extension, and those that are named.  Rows that
-- Citus does not see would be in the table's own file.
CREATE FUNCTION entityapi.check_distributed(others regclass[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	found text;
BEGIN
	SELECT string_agg(o.own::text, ', ' ORDER BY o.own::text COLLATE "C")
	INTO found
	FROM (SELECT entityapi.list_own_tables()
		  UNION ALL SELECT entityapi.list_audit_tables()
		  UNION ALL SELECT unnest(others)) o (own)
	WHERE pg_relation_size(o.own) > 0
	   OR NOT EXISTS (SELECT FROM pg_dist_partition p
					  WHERE p.logicalrelid = o.own
						AND (p.partmethod = 'n' AND p.repmodel = 't'
							 OR p.colocationid = (
								SELECT a.colocationid
								FROM pg_dist_partition a
								WHERE a.logicalrelid
									= 'entityapi.audit'::regclass)));
	IF found IS NOT NULL THEN
		RAISE EXCEPTION 'rows are left on this node alone: %', found
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Of tables that you have distributed yourself, '
					'truncate_local_data_after_distributing_table() removes '
					'them.';
	END IF;
END
$$;

-- on a node that Citus has given the extension
DO $$
DECLARE
	worker bool := false;
BEGIN
	IF pg_catalog.to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL
	THEN
		EXECUTE 'SELECT l.groupid OPERATOR(pg_catalog.<>) 0'
			' FROM pg_catalog.pg_dist_local_group l' INTO worker;
	END IF;
	IF worker THEN
		PERFORM entityapi.prepare_node();
	END IF;
END
$$;
