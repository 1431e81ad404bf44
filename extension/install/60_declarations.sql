-- What nodes of a cluster take for declarations
--
-- There entityapi_owner can write them, since Citus wants one role for all
-- that lies together, and so could its members by statements of their own.  So
-- the installer announces what a change is going to write, by hashes of the
-- rows, and each node refuses all else of who is no superuser.  On one node
-- nothing of this is used.
--
-- What is announced is for the change that is under way, and for no other: by
-- then it has written a row that each node has, and is known there by the
-- number that PostgreSQL has given it.  If it fails, or is undone, nobody sees
-- that row any more, and the hashes that are left admit nothing.
--
-- Nobody but the installer calls these.

-- One row, on each node; a change of the declarations writes it first.
CREATE TABLE entityapi.declaring (
	present boolean PRIMARY KEY CHECK (present)
);

INSERT INTO entityapi.declaring VALUES (true);

COMMENT ON TABLE entityapi.declaring IS
	'A row that each node of a cluster has, by which a change is known there';

-- Not with Citus: each node has what its own numbers say.
CREATE TABLE entityapi.announced (
	seal text PRIMARY KEY,
	writer xid NOT NULL
);

COMMENT ON TABLE entityapi.announced IS
	'Hashes of the declarations that this node of a cluster lets be written';
COMMENT ON COLUMN entityapi.announced.writer IS
	'By whom, as the row of declaring tells: the (sub)transaction';

-- kind: a table, with + for a row that comes, - for one that goes
CREATE FUNCTION entityapi.seal(kind text, declared jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT encode(sha256(convert_to(
			kind || (declared - 'applied_at')::text, 'UTF8')), 'hex')
	$$;

-- By other sessions, whose transactions are over before the caller writes.
CREATE FUNCTION entityapi.announce(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	failed text;
BEGIN
	SELECT string_agg(format('%s:%s: %s', n.nodename, n.nodeport, r.result),
					  ', ') INTO failed
	FROM run_command_on_all_nodes(
			format('SELECT entityapi.announce_here(%L)', seals)) r
	JOIN pg_dist_node n USING (nodeid)
	WHERE NOT r.success;
	IF failed IS NOT NULL THEN
		RAISE EXCEPTION 'the nodes cannot be told what is to be declared: %',
			failed
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
END
$$;

-- The part that this node has of declaring
CREATE FUNCTION entityapi.declaring_here() RETURNS text
	LANGUAGE plpgsql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text;
BEGIN
	SELECT format('entityapi.declaring_%s', s.shardid) INTO STRICT name
	FROM pg_dist_shard s
	WHERE s.logicalrelid = 'entityapi.declaring'::regclass;
	RETURN name;
END
$$;

-- Who is about to declare has a turn here (EA_TURN_DECLARING), and has written
-- the row by the latest of the numbers that he has.
CREATE FUNCTION entityapi.announce_here(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	his xid;
BEGIN
	SELECT own.transactionid INTO STRICT his
	FROM pg_locks turn
	JOIN pg_database d ON d.oid = turn.database
		AND d.datname = current_database()
	JOIN pg_locks own ON own.pid = turn.pid
		AND own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock'
		AND own.granted
	WHERE turn.locktype = 'advisory' AND turn.granted
	  AND turn.classid = 0 AND turn.objid = 0
	  AND turn.objsubid = x'EA15'::int - 65536
	ORDER BY age(own.transactionid) LIMIT 1;
	DELETE FROM entityapi.announced;
	INSERT INTO entityapi.announced (seal, writer)
	SELECT DISTINCT s.seal, his FROM unnest(seals) s (seal);
END
$$;

CREATE FUNCTION entityapi.is_announced(seals text[]) RETURNS boolean
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	found bigint;
BEGIN
	-- within a statement of Citus none other may go by it
	EXECUTE format('SELECT count(*) FROM entityapi.announced a'
				   ' JOIN %s d ON d.xmin = a.writer WHERE a.seal = ANY ($1)',
				   entityapi.declaring_here()) INTO found USING seals;
	RETURN found = cardinality(seals);
END
$$;

-- A trigger of the parts that nodes have of what is declared.  Who writes is
-- asked for his own rights, whatever those of the session are.
CREATE FUNCTION entityapi.refuse_unannounced() RETURNS trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	declares text := regexp_replace(tg_table_name, '_[0-9]+$', '');
	wanted text[] := '{}';
BEGIN
	IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = CURRENT_USER) THEN
		RETURN coalesce(new, old);
	END IF;
	IF tg_op <> 'INSERT' THEN
		wanted := wanted || entityapi.seal('-' || declares, to_jsonb(old));
	END IF;
	IF tg_op <> 'DELETE' THEN
		wanted := wanted || entityapi.seal('+' || declares, to_jsonb(new));
	END IF;
	IF NOT entityapi.is_announced(wanted) THEN
		RAISE EXCEPTION 'declarations are written by apply_manifest() alone'
			USING ERRCODE = 'insufficient_privilege';
	END IF;
	RETURN coalesce(new, old);
END
$$;

-- While they are with Citus
CREATE FUNCTION entityapi.guard_declarations(guarded boolean) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	own regclass;
BEGIN
	FOREACH own IN ARRAY '{entityapi.entity, entityapi.service,
		entityapi.revision, entityapi.past_name}'::regclass[]
	LOOP
		EXECUTE format('DROP TRIGGER IF EXISTS refuse_unannounced ON %s', own);
		IF guarded THEN
			EXECUTE format('CREATE TRIGGER refuse_unannounced'
						   ' BEFORE INSERT OR UPDATE OR DELETE ON %s'
						   ' FOR EACH ROW EXECUTE FUNCTION'
						   ' entityapi.refuse_unannounced()', own);
		END IF;
	END LOOP;
END
$$;
