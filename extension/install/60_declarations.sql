-- What nodes of a cluster take for declarations
--
-- There entityapi_owner can write them, since Citus wants one role for all
-- that lies together, and so could its members by statements of their own.  So
-- the installer announces what a change is going to write, by hashes of the
-- rows, and each node refuses all else of who is no superuser.  On one node
-- nothing of this is used.
--
-- Nobody but the installer calls these.

CREATE TABLE entityapi.announced (
	seal text PRIMARY KEY
);

COMMENT ON TABLE entityapi.announced IS
	'Hashes of the declarations that nodes of a cluster let be written';

-- kind: a table, with + for a row that comes, - for one that goes
CREATE FUNCTION entityapi.seal(kind text, declared jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT encode(sha256(convert_to(
			kind || (declared - 'applied_at')::text, 'UTF8')), 'hex')
	$$;

-- By another session, whose transaction is over before the caller writes.
CREATE FUNCTION entityapi.announce(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	done record;
BEGIN
	SELECT r.success, r.result INTO done
	FROM run_command_on_coordinator(
			format('SELECT entityapi.announce_here(%L)', seals)) r;
	IF NOT done.success THEN
		RAISE EXCEPTION 'the nodes cannot be told what is to be declared: %',
			done.result
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
END
$$;

CREATE FUNCTION entityapi.announce_here(seals text[]) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	DELETE FROM entityapi.announced WHERE seal <> ALL (seals);
	INSERT INTO entityapi.announced (seal)
	SELECT DISTINCT s.seal FROM unnest(seals) s (seal)
	WHERE s.seal <> ALL (ARRAY(SELECT a.seal FROM entityapi.announced a));
END
$$;

-- A trigger of the parts that nodes have of entity, service and revision
CREATE FUNCTION entityapi.refuse_unannounced() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	declares text := regexp_replace(tg_table_name, '_[0-9]+$', '');
	shard bigint;
	wanted text[] := '{}';
	found bigint;
BEGIN
	IF current_setting('is_superuser') = 'on' THEN
		RETURN coalesce(new, old);
	END IF;
	IF tg_op <> 'INSERT' THEN
		wanted := wanted || entityapi.seal('-' || declares, to_jsonb(old));
	END IF;
	IF tg_op <> 'DELETE' THEN
		wanted := wanted || entityapi.seal('+' || declares, to_jsonb(new));
	END IF;

	-- within a statement of Citus none other may go by it
	SELECT s.shardid INTO STRICT shard
	FROM pg_dist_shard s
	WHERE s.logicalrelid = 'entityapi.announced'::regclass;
	EXECUTE format('SELECT count(*) FROM entityapi.announced_%s'
				   ' WHERE seal = ANY ($1)', shard) INTO found USING wanted;
	IF found < cardinality(wanted) THEN
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
		entityapi.revision}'::regclass[]
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
