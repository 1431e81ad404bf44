-- A part of a cluster's tenants moves, or is divided, while it is written to
--
-- PostgreSQL replicates to the new place then what is written meanwhile, each
-- owner's tables by themselves, and the log is the installer's where all else
-- is entityapi_owner's.  Citus waits for what it hears of: replication that
-- has not begun, or has failed, is not counted, and its rows would be lost.
-- So each node looks for itself, before a statement that Citus sends to make
-- an index, or a key.  Keys are the last that it makes, when nobody can write
-- any more, and if that fails all is as it was before.
--
-- It also says what there is to do first where the extension is to be dropped,
-- since Citus fails at that with words of its own.
--
-- Nobody but the installer calls these.

CREATE FUNCTION entityapi.await_replication() RETURNS event_trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	last bool := current_setting('citus.skip_constraint_validation', true)
		= 'on';
	until timestamptz := clock_timestamp()
		+ CASE WHEN last THEN interval '10s' ELSE interval '30s' END;
	behind text;
	ends jsonb;
BEGIN
	IF tg_tag = 'DROP EXTENSION' THEN
		IF current_query() ~* '[[:<:]]entityapi[[:>:]]'
			AND EXISTS (SELECT FROM pg_dist_partition
						WHERE logicalrelid = 'entityapi.audit'::regclass) THEN
			RAISE EXCEPTION 'Citus has the tables of the service'
				USING ERRCODE = 'dependent_objects_still_exist',
					HINT = 'Apply "distribution: none" first.';
		END IF;
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_subscription
				   WHERE subname ~ '^citus_shard_') THEN
		RETURN;
	END IF;
	LOOP
		-- those of one move have a number at the end and one source, from
		-- where they all get as far as the first of them has
		WITH found AS (
			SELECT s.subname, substring(s.subname FROM '[0-9]+$') AS move,
				   w.latest_end_lsn AS place
			FROM pg_subscription s
			JOIN pg_database d ON d.oid = s.subdbid
			LEFT JOIN pg_stat_subscription w ON w.subid = s.oid
			WHERE d.datname = current_database() AND s.subenabled
			  AND s.subname ~ '^citus_shard_'
		), farthest AS (
			SELECT f.move, max(f.place) AS place FROM found f GROUP BY f.move
		)
		SELECT string_agg(f.subname, ', ') FILTER (
					WHERE f.place IS NULL
					   OR last AND f.place < coalesce(
							(ends ->> f.move)::pg_lsn, m.place)),
			   coalesce(ends, jsonb_object_agg(m.move, m.place)
							FILTER (WHERE m.place IS NOT NULL))
		INTO behind, ends
		FROM found f JOIN farthest m USING (move);
		EXIT WHEN behind IS NULL;
		IF clock_timestamp() > until THEN
			RAISE EXCEPTION 'rows would be lost, as they are not replicated '
				'to this node: %', behind
				USING ERRCODE = 'object_not_in_prerequisite_state',
					HINT = 'The log of this node says why. Repeat it, or use '
						'''block_writes''.';
		END IF;
		PERFORM pg_sleep(0.02);
	END LOOP;
END
$$;

-- Of each node; on those that come later the extension is made with it.  It is
-- the extension's, and goes with it.
CREATE FUNCTION entityapi.guard_moves() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_event_trigger
				   WHERE evtname = 'entityapi_await_replication') THEN
		CREATE EVENT TRIGGER entityapi_await_replication
			ON ddl_command_start
			WHEN TAG IN ('ALTER TABLE', 'CREATE INDEX', 'DROP EXTENSION')
			EXECUTE FUNCTION entityapi.await_replication();
		ALTER EVENT TRIGGER entityapi_await_replication ENABLE ALWAYS;
	END IF;
	IF NOT entityapi.guard_is_member() THEN
		ALTER EXTENSION entityapi
			ADD EVENT TRIGGER entityapi_await_replication;
	END IF;
END
$$;

CREATE FUNCTION entityapi.unguard_moves() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF entityapi.guard_is_member() THEN
		ALTER EXTENSION entityapi
			DROP EVENT TRIGGER entityapi_await_replication;
	END IF;
	DROP EVENT TRIGGER IF EXISTS entityapi_await_replication;
END
$$;

CREATE FUNCTION entityapi.guard_is_member() RETURNS boolean
	LANGUAGE sql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT EXISTS (SELECT FROM pg_event_trigger t
					   JOIN pg_depend m ON m.objid = t.oid AND m.deptype = 'e'
						AND m.classid = 'pg_event_trigger'::regclass
					   WHERE t.evtname = 'entityapi_await_replication')
	$$;
