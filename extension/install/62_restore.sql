-- A cluster that is restored, and whether its nodes agree
--
-- Superusers alone call these: a name in the WAL is theirs to give, and what
-- is compared is all that each node has.

-- Let nobody commit on this node what others have a part in; returns false.
CREATE FUNCTION entityapi.hold_commits(anchor boolean) RETURNS boolean
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_hold_commits';

-- An error on the other nodes of a cluster
CREATE FUNCTION entityapi.require_coordinator() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF NOT citus_is_coordinator() THEN
		RAISE EXCEPTION 'this node is not the coordinator'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'Call it where apply is called.';
	END IF;
END
$$;

-- A name for one moment of all nodes.  Citus 13.2 keeps the coordinator alone
-- from committing meanwhile, and here every node writes what all have.
CREATE FUNCTION entityapi.create_restore_point(name text) RETURNS pg_lsn
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET lock_timeout = '5s'
	AS $$
DECLARE
	place pg_lsn;
BEGIN
	IF NOT entityapi.audit_is_distributed() THEN
		RETURN pg_create_restore_point(name);
	END IF;
	PERFORM entityapi.require_coordinator();
	PERFORM set_config('citus.enable_local_execution', 'on', true),
			entityapi.carry_lock_timeout();
	UPDATE entityapi.everywhere SET present = present
	WHERE entityapi.hold_commits(present);
	SELECT citus_create_restore_point(name) INTO place;
	RETURN place;
EXCEPTION WHEN lock_not_available THEN
	RAISE EXCEPTION 'a commit of several nodes does not end'
		USING ERRCODE = 'lock_not_available',
			HINT = 'No name has been given. Try again.';
END
$$;

COMMENT ON FUNCTION entityapi.create_restore_point(text) IS
	'Name one moment in the WAL of all nodes, to restore them to';

-- Ask a query of one row as the owner of the relation that it reads.  An owner
-- can put a view in its place, whose functions run then.
CREATE FUNCTION entityapi.ask_as_owner(relation regclass, query text)
	RETURNS jsonb
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_ask_as_owner';

-- Describe this node, as far as all are to be alike, by its own catalogs.
CREATE FUNCTION entityapi.describe_here() RETURNS jsonb
	LANGUAGE plpgsql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	here int;
	versions jsonb;
	tables jsonb;
	parts jsonb;
	roles jsonb;
BEGIN
	SELECT groupid INTO STRICT here FROM pg_dist_local_group;
	SELECT jsonb_object_agg(e.extname, e.extversion)
		|| jsonb_build_object('library', entityapi.version(),
							  'PostgreSQL', current_setting('server_version'))
	INTO versions
	FROM pg_extension e WHERE e.extname IN ('citus', 'entityapi', 'pgcrypto');

	-- Each table, as Citus knows it and as it is.  A condition has another
	-- text once it was read again, and the log's own partitions that are left
	-- on nodes have the keys that they were installed with.
	SELECT jsonb_object_agg(p.logicalrelid::text, jsonb_build_array(
		md5(concat(p.partmethod, p.repmodel, p.colocationid, (
			SELECT string_agg(format('%s %s %s %s', s.shardid, s.shardminvalue,
									 s.shardmaxvalue, l.groupid), ','
							  ORDER BY s.shardid, l.groupid)
			FROM pg_dist_shard s
			JOIN pg_dist_placement l USING (shardid)
			WHERE s.logicalrelid = p.logicalrelid))),
		md5(concat(entityapi.columns_of(p.logicalrelid), (
			SELECT string_agg(format('%s %s', k.conname,
									 CASE WHEN k.contype <> 'c' THEN
										pg_get_constraintdef(k.oid) END), ','
							  ORDER BY k.conname COLLATE "C")
			FROM pg_constraint k
			WHERE k.conrelid = p.logicalrelid AND k.contype <> 'n'
			  AND k.connamespace <> 'entityapi'::regnamespace)))))
	INTO tables
	FROM pg_dist_partition p;

	-- parts of tables that belong here
	SELECT jsonb_object_agg(s.logicalrelid::text,
							CASE WHEN o.part IS NULL THEN 'missing'
								ELSE 'other' END)
	INTO parts
	FROM pg_dist_shard s
	JOIN pg_dist_placement l ON l.shardid = s.shardid AND l.groupid = here
	CROSS JOIN LATERAL (SELECT to_regclass(
		shard_name(s.logicalrelid, s.shardid, false))) o (part)
	WHERE o.part IS NULL
	   OR entityapi.columns_of(o.part)
			<> entityapi.columns_of(s.logicalrelid);
	SELECT jsonb_object_agg(m.role, here) INTO roles
	FROM entityapi.mapped_role m
	WHERE (m.node_oids ->> here::text)::oid IS DISTINCT FROM
		(SELECT r.oid FROM pg_roles r WHERE r.rolname = m.role);
	RETURN jsonb_build_object(
		'versions', versions, 'tables', tables, 'parts', parts,
		'roles', roles,
		'nodes', (SELECT md5(string_agg(format('%s %s %s %s %s', n.groupid,
											   n.nodename, n.nodeport,
											   n.isactive, n.shouldhaveshards),
										',' ORDER BY n.groupid, n.nodeid))
				  FROM pg_dist_node n),
		'prepared', (SELECT count(*) FROM pg_prepared_xacts x
					 WHERE x.database = current_database()
					   AND x.prepared < now() - interval '10 seconds'));
END
$$;

-- The columns of a table, as a text to be compared.  The log's tenant may be
-- null in what is left of its own on nodes that were given the extension.
CREATE FUNCTION entityapi.columns_of(relation regclass) RETURNS text
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT string_agg(format('%s %s', a.attname,
								 format_type(a.atttypid, a.atttypmod)), ','
						  ORDER BY a.attname COLLATE "C")
		FROM pg_attribute a
		WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
	$$;

-- How many rows this node has of tables that all have, and a number that is
-- another for other rows.  Texts of rows are to be the same on all of them.
CREATE FUNCTION entityapi.count_here(shards text[]) RETURNS jsonb
	LANGUAGE plpgsql VOLATILE
	SET search_path = pg_catalog, pg_temp
	SET datestyle = 'ISO'
	SET intervalstyle = 'postgres'
	SET timezone = 'UTC'
	SET bytea_output = 'hex'
	SET extra_float_digits = 1
	SET xmloption = 'content'
	SET lc_monetary = 'C'
	AS $$
DECLARE
	shard text;
	counted jsonb := '{}';
BEGIN
	FOREACH shard IN ARRAY shards LOOP
		IF to_regclass(shard) IS NOT NULL THEN
			counted := counted || jsonb_build_object(shard,
				entityapi.ask_as_owner(shard::regclass, format(
					'SELECT jsonb_build_array(count(*),'
					' sum(hashtextextended(t::text COLLATE "C", 0)::numeric)'
					'::text) FROM %s t', shard)));
		END IF;
	END LOOP;
	RETURN counted;
END
$$;

-- Rows of User are copies of accounts: the ones are with their tenants, the
-- others on every node.  The message says how they differ; null if they agree.
CREATE FUNCTION entityapi.compare_copies(OUT name text, OUT message text)
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	accounts bigint;
	copies bigint;
	pairs bigint;
BEGIN
	SELECT format('%I.%I', e.d ->> 'schema', e.d ->> 'table') INTO name
	FROM (SELECT definition::jsonb FROM entityapi.entity t
		  WHERE t.name = 'User') e (d)
	WHERE (e.d ->> 'accounts')::boolean AND NOT e.d ? 'columns';
	IF name IS NOT NULL THEN
		SELECT c.n ->> 0, c.n ->> 1, c.n ->> 2 INTO accounts, copies, pairs
		FROM (SELECT entityapi.ask_as_owner(name::regclass, format(
				'SELECT jsonb_build_array('
				'(SELECT count(*) FROM entityapi.account'
				' WHERE tenant_id IS NOT NULL),'
				' (SELECT count(*) FROM %1$s),'
				' (SELECT count(*) FROM %1$s u JOIN entityapi.account a'
				'  ON a.tenant_id = u.tenant_id AND a.id = u.id))', name)))
			c (n);
		IF accounts <> pairs OR copies <> pairs THEN
			message := format('of %s accounts and %s rows %s belong together',
							  accounts, copies, pairs);
		END IF;
	END IF;
END
$$;

-- Differences between the nodes as describe_here() describes them, the
-- coordinator first.  Without a hint they are to be restored again.
CREATE FUNCTION entityapi.compare_descriptions(described jsonb,
											   OUT node text, OUT object text,
											   OUT message text, OUT hint text)
	RETURNS SETOF record
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT d ->> 'node', o.object, o.message, o.hint
		FROM jsonb_array_elements(described) WITH ORDINALITY e (d, i)
		CROSS JOIN LATERAL (SELECT described #> '{0,is}') c (ours)
		CROSS JOIN LATERAL (
			SELECT 'version of ' || v.key,
				   format('is %s, and the coordinator''s is %s', v.value,
						  ours #>> ARRAY['versions', v.key]),
				   'Install the same version, and restart the node.'
			FROM jsonb_each_text(d #> '{is,versions}') v
			WHERE v.value IS DISTINCT FROM
				ours #>> ARRAY['versions', v.key]
			UNION ALL
			SELECT 'prepared transactions',
				   format('%s are left of commits', d #> '{is,prepared}'),
				   'SELECT recover_prepared_transactions(), on each node'
			WHERE (d #>> '{is,prepared}')::bigint > 0
			UNION ALL
			SELECT 'nodes', 'other nodes are known than the coordinator knows',
				   NULL
			WHERE d #> '{is,nodes}' <> ours -> 'nodes'
			UNION ALL
			SELECT t.name,
				   CASE WHEN his.known IS NULL THEN 'there is no such table'
						WHEN our.known IS NULL
						THEN 'the coordinator has no such table'
						WHEN his.known ->> 0 <> our.known ->> 0
						THEN 'its parts are others, or elsewhere, than the '
							'coordinator knows'
						ELSE 'columns or constraints are others than the '
							'coordinator''s' END,
				   NULL
			FROM (SELECT jsonb_object_keys(d #> '{is,tables}')
				  UNION SELECT jsonb_object_keys(ours -> 'tables')) t (name)
			CROSS JOIN LATERAL (SELECT d #> ARRAY['is', 'tables', t.name])
				his (known)
			CROSS JOIN LATERAL (SELECT ours #> ARRAY['tables', t.name])
				our (known)
			WHERE his.known IS DISTINCT FROM our.known
			UNION ALL
			SELECT p.key,
				   CASE p.value
						WHEN 'missing' THEN 'a part that belongs here is '
							'missing'
						ELSE 'a part has other columns than the table' END,
				   NULL
			FROM jsonb_each_text(nullif(d #> '{is,parts}', 'null')) p
			UNION ALL
			SELECT m.role, 'the role that is mapped has another oid here',
				   format('SELECT entityapi.map_role(%L, ...), on the '
						  'coordinator', m.role)
			FROM jsonb_object_keys(nullif(d #> '{is,roles}', 'null'))
				m (role)) o (object, message, hint)
		WHERE d -> 'is' <> 'null'
		ORDER BY e.i, o.object COLLATE "C"
	$$;

-- Differences of rows that all nodes have, the coordinator being named.  They
-- are counted while others write, so rows that seem to differ are counted
-- again, and nobody of the service writes then; but for a turn all nodes are
-- wanted, so where some are away they are counted once.
CREATE FUNCTION entityapi.compare_rows(coordinator text, all_answer boolean,
									   OUT node text, OUT object text,
									   OUT message text)
	RETURNS SETOF record
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	shards text[];
	names jsonb;
	counted jsonb;
	copies text;
	wrong text;
	tries int := 0;
	most CONSTANT int := 10;
BEGIN
	SELECT array_agg(s.shard ORDER BY s.shard),
		   jsonb_object_agg(s.shard, s.name)
	INTO shards, names
	FROM (SELECT shard_name(d.logicalrelid, d.shardid, false),
				 d.logicalrelid::text
		  FROM pg_dist_partition p
		  JOIN pg_dist_shard d USING (logicalrelid)
		  WHERE p.partmethod = 'n' AND p.repmodel = 't') s (shard, name);
	LOOP
		SELECT jsonb_object_agg(format('%s:%s', n.nodename, n.nodeport),
								r.result::jsonb ORDER BY n.groupid)
		INTO counted
		FROM run_command_on_all_nodes(
				format('SELECT entityapi.count_here(%L)',
					   coalesce(shards, '{}'))) r
		JOIN pg_dist_node n USING (nodeid)
		WHERE r.success;
		SELECT array_agg(s.shard) INTO shards
		FROM unnest(shards) s (shard)
		WHERE 1 < (SELECT count(DISTINCT c.value -> s.shard)
				   FROM jsonb_each(counted) c
				   WHERE c.value ? s.shard);
		EXIT WHEN NOT all_answer OR tries = most;
		SELECT c.name, c.message INTO copies, wrong
		FROM entityapi.compare_copies() c;
		EXIT WHEN shards IS NULL AND wrong IS NULL;
		IF tries = 0 THEN
			PERFORM entityapi.take_turn(count(*), x'EA16'::int, true)
			FROM entityapi.moved
			WHERE tenant_id = '00000000-0000-0000-0000-000000000000';
		ELSE
			PERFORM pg_sleep(0.3);
		END IF;
		tries := tries + 1;
	END LOOP;
	RETURN QUERY
		SELECT c.key, names ->> s.shard,
			   format('rows are not those of the coordinator: %s, and there '
					  '%s', c.value #>> ARRAY[s.shard, '0'],
					  our.counted ->> 0)
		FROM unnest(shards) s (shard)
		CROSS JOIN jsonb_each(counted) c
		CROSS JOIN LATERAL (SELECT counted -> coordinator -> s.shard)
			our (counted)
		WHERE c.value ? s.shard
		  AND c.value -> s.shard <> our.counted
		ORDER BY 1, 2;
	RETURN QUERY SELECT NULL, copies, wrong WHERE wrong IS NOT NULL;
END
$$;

-- Differences between the nodes of a cluster; none where there is no cluster.
CREATE FUNCTION entityapi.compare_nodes(OUT node text, OUT object text,
										OUT message text, OUT hint text)
	RETURNS SETOF record
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	again CONSTANT text := 'Restore all nodes to one name that '
		'create_restore_point() has given.';
	described jsonb;
BEGIN
	IF NOT entityapi.audit_is_distributed() THEN
		RETURN;
	END IF;
	PERFORM entityapi.require_coordinator();
	SELECT jsonb_agg(jsonb_build_object(
		'node', format('%s:%s', n.nodename, n.nodeport),
		'is', CASE WHEN r.success THEN r.result::jsonb END,
		'silent', CASE WHEN NOT r.success THEN r.result END)
		ORDER BY n.groupid)
	INTO described
	FROM run_command_on_all_nodes('SELECT entityapi.describe_here()') r
	JOIN pg_dist_node n USING (nodeid);
	RETURN QUERY
		SELECT d ->> 'node', NULL, 'does not answer: ' || (d ->> 'silent'),
			NULL
		FROM jsonb_array_elements(described) d
		WHERE d ->> 'silent' IS NOT NULL;
	IF described #>> '{0,silent}' IS NOT NULL THEN
		RETURN;
	END IF;
	RETURN QUERY
		SELECT d.node, d.object, d.message, coalesce(d.hint, again)
		FROM entityapi.compare_descriptions(described) d;
	RETURN QUERY
		SELECT r.node, r.object, r.message, again
		FROM entityapi.compare_rows(described #>> '{0,node}', NOT EXISTS (
				SELECT FROM jsonb_array_elements(described) d
				WHERE d ->> 'silent' IS NOT NULL)) r;
END
$$;

COMMENT ON FUNCTION entityapi.compare_nodes() IS
	'Differences between the nodes of a cluster that are to be alike';
