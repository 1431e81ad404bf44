# shellcheck shell=bash
#
# service.sh: the service as a whole, on top of common.sh: database, manifests,
# SuperAdmin, shim, example data.  Used by "run", "up", "down" and "bench".

SUPERADMIN=superadmin
URL=http://127.0.0.1:$PORT
: "${CORS:=}" "${FRONT:=}" "${SHIM_CONFIG:=}"

# `make down DATA=elsewhere`: a command for the folder that is worked in
command_for()
{
	local verb=$1 data=${DATA#"$CHECKOUT"/}
	shift

	[[ $data == .local ]] || set -- "DATA=$(printf '%q' "$data")" "$@"
	say "make $verb${*:+ $*}"
}

# --- the database -----------------------------------------------------------

# As sql, where a deployer may have made a schema with the superuser's name:
# functions and operators are PostgreSQL's, whatever would fit better.
sql_pinned()
{
	PGOPTIONS="-c search_path=pg_catalog,pg_temp ${PGOPTIONS-}" sql "$@"
}

# Database, extension and the shim's role.  Sessions of that role neither wait
# for long nor put the values of a request into the server's log.
prepare_database()
{
	local sum installed

	[[ $(sql_pinned -d postgres -c "select count(*) from pg_database
		where datname = '$PGDATABASE'") == 1 ]] ||
		sql_pinned -d postgres -c "create database $PGDATABASE"

	# A version under way may change without a script that leads there.
	sum=$(sha256sum <"$INSTALL_SCRIPT")
	installed=$(sql_pinned -c "select extversion from pg_extension
		where extname = 'entityapi'")
	if [[ -z $installed ]]; then
		PGOPTIONS='-c client_min_messages=warning' \
			sql -c 'create extension entityapi cascade'
		say "$sum" >"$STATE/extension.sum"
	elif [[ entityapi--$installed.sql != "$INSTALL_SCRIPT" ]]; then
		sql_pinned -c 'alter extension entityapi update'
		say "$sum" >"$STATE/extension.sum"
	elif [[ $sum != "$(cat "$STATE/extension.sum" 2>/dev/null)" ]]; then
		die "The database in $STATE/cluster was made by another version of the\
 extension.
Export what you need of it, then:
  $(command_for down) && rm -r '$STATE/cluster'"
	fi

	sql_pinned <<-SQL
		set client_min_messages = warning;
		do \$\$
		begin
			if not exists (select from pg_roles
						   where rolname = '$SHIM_ROLE') then
				create role $SHIM_ROLE login;
			end if;
		end
		\$\$;
		grant entityapi_client to $SHIM_ROLE;
		alter role $SHIM_ROLE set statement_timeout = '5s';
		alter role $SHIM_ROLE set lock_timeout = '2s';
		alter role $SHIM_ROLE set idle_in_transaction_session_timeout = '10s';
		alter role $SHIM_ROLE set log_parameter_max_length = 0;
		alter role $SHIM_ROLE set log_parameter_max_length_on_error = 0;
	SQL
}

# The generated passwords, made once.  They are written down before anything
# uses them, so that an interruption cannot lose one.
read_credentials()
{
	if [[ ! -s $DATA/credentials ]]; then
		(
			umask 077
			cat >"$DATA/credentials" <<-CREDENTIALS
				SUPERADMIN_PASSWORD=$(secret)
				DEMO_PASSWORD=$(secret)
			CREDENTIALS
		)
	fi
	# shellcheck source=/dev/null
	. "$DATA/credentials"
}

# The comment on the database tells, in the same transaction, that it is done.
# The statement must not appear in the server's log if it fails.
create_superadmin()
{
	local done_before

	done_before=$(sql_pinned -c "select
		shobj_description(oid, 'pg_database') is not null
		from pg_database where datname = current_database()")
	[[ $done_before == f ]] || return 0
	sql_pinned -o /dev/null <<-SQL
		set log_min_error_statement = panic;
		begin;
		select entityapi.create_superadmin('$SUPERADMIN',
										   '$SUPERADMIN_PASSWORD');
		comment on database $PGDATABASE
			is 'private cluster of an entityapi checkout';
		commit;
	SQL
}

database_of()
{
	say "host=$PGHOST port=$PGPORT dbname=$PGDATABASE user=$1"
}

# Hooks call functions that nobody could make before there was a database.
apply_manifests()
{
	local up

	"$PRIVATE_BIN/entityapi-shim" apply \
		--database "$(database_of "$PGUSER")" \
		"$MANIFESTS" >"$DATA/apply.log" 2>&1 && return
	cat "$DATA/apply.log" >&2
	up=$(command_for up "MANIFESTS=$(printf '%q' "$MANIFESTS")")
	[[ ${0##*/} == up ]] ||
		say "The database is stopped; this leaves it running:" "  $up" >&2
	die "The manifests in $MANIFESTS were not applied." \
		"$DATA/env is written: make what they call there, and go on:" \
		"  . $DATA/env && psql -f FILE && $up"
}


# --- the shim ---------------------------------------------------------------

shim_running()
{
	alive "$STATE/shim.pid" "$STATE/shim.json"
}

# Our settings; those of SHIM_CONFIG, CORS and FRONT come on top.
shim_config()
{
	perl -MJSON::PP -e '
		my ($port, $database, $file, $cors, $front) = @ARGV;
		my %settings = (listen => "127.0.0.1:$port", database => $database,
			console => JSON::PP::true);
		my $json = JSON::PP->new->canonical->pretty->relaxed;

		if ($file ne "")
		{
			open my $in, "<", $file or die "$file: $!\n";
			my $more = eval { $json->decode(join "", <$in>) };
			die "$file: no JSON object: $@" if ref $more ne "HASH";
			%settings = (%settings, %$more);
		}
		$settings{cors_origins} = $cors if $cors ne "";
		$settings{front} = $front if $front ne "";
		print $json->encode(\%settings)' \
		"$PORT" "$(database_of "$SHIM_ROLE")" "$SHIM_CONFIG" "$CORS" \
		"$FRONT" ||
		die "The settings in $SHIM_CONFIG (SHIM_CONFIG) cannot be read."
}

# Has somebody changed what was written to shim.json?
shim_config_is_theirs()
{
	[[ -e $STATE/shim.json && -e $STATE/shim.json.made ]] &&
		! cmp -s "$STATE/shim.json" "$STATE/shim.json.made"
}

# It says itself then where the shim listens.
find_url()
{
	local listen

	shim_config_is_theirs || return 0
	listen=$(perl -MJSON::PP -e 'local $/; print JSON::PP->new->decode(
		scalar <STDIN>)->{listen} // ""' <"$STATE/shim.json" 2>/dev/null) ||
		true
	[[ -z $listen ]] || URL=http://${listen%%,*}
}

write_shim_config()
{
	local file=$STATE/shim.json made=$STATE/shim.json.made

	if shim_config_is_theirs; then
		say "Kept, as it was changed by hand: $file"
		return
	fi

	# settings can be secrets
	(umask 077 && shim_config >"$made.new")
	((EUID != 0)) || chown postgres: "$made.new"
	cp -p "$made.new" "$file"
	mv "$made.new" "$made"
}

healthy()
{
	perl -MHTTP::Tiny -e '
		my $http = HTTP::Tiny->new(timeout => 2);
		my $answer = $http->get("$ARGV[0]/actuator/health");
		exit($answer->{status} != 200)' "$URL"
}

# Start the shim in the background and wait until it answers UP.  A shim that
# runs with the same settings is left alone.
shim_start()
{
	local i pid address

	write_shim_config
	if shim_running && cmp -s "$STATE/shim.json" "$STATE/shim.json.used"; then
		return
	fi
	shim_stop

	address=${URL#http://}
	! (: <>"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null ||
		die "Port ${address##*:} is taken by another program;\
 choose a free one, as in:
  $(command_for up "PORT=$((PORT + 1))")"

	cp -p "$STATE/shim.json" "$STATE/shim.json.used"
	exec_service setsid "$PRIVATE_BIN/entityapi-shim" serve \
		--config "$STATE/shim.json" </dev/null >>"$STATE/shim.log" 2>&1 9>&- &
	pid=$!
	say "$pid" >"$STATE/shim.pid"

	for ((i = 0; i < 150; i++)); do
		! healthy || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.2
	done
	tail -n 20 "$STATE/shim.log" >&2
	die "The shim does not answer UP; see $STATE/shim.log\
 and $STATE/postgresql.log"
}

# The shim drains: it may take as long as its longest request.
shim_stop()
{
	local i pid

	if shim_running; then
		pid=$(cat "$STATE/shim.pid")
		kill -TERM "$pid" 2>/dev/null || true
		for ((i = 0; i < 300; i++)); do
			shim_running || break
			sleep 0.1
		done
		! shim_running || kill -KILL "$pid"
	fi
	rm -f "$STATE/shim.pid"
}


# --- all of it --------------------------------------------------------------

write_env()
{
	(
		umask 077
		{
			printf 'export ENTITYAPI_URL=%q\n' "$URL"
			printf 'export ENTITYAPI_SUPERADMIN_USERNAME=%q\n' "$SUPERADMIN"
			printf 'export ENTITYAPI_SUPERADMIN_PASSWORD=%q\n' \
				"$SUPERADMIN_PASSWORD"
			printf 'export PGHOST=%q PGPORT=%q PGDATABASE=%q PGUSER=%q\n' \
				"$PGHOST" "$PGPORT" "$PGDATABASE" "$PGUSER"
			[[ -z $KEY ]] ||
				printf 'export ENTITYAPI_KEY=%q DEMO_PASSWORD=%q\n' \
					"$KEY" "$DEMO_PASSWORD"
		} >"$DATA/env.new"
	)
	mv "$DATA/env.new" "$DATA/env"
}

# That of the last time
find_key()
{
	KEY=
	if with_demo && [[ -e $DATA/env ]]; then
		KEY=$(sed -n 's/^export ENTITYAPI_KEY=\([^ ]*\).*/\1/p' "$DATA/env")
	fi
}

# The example data, and a key for first requests, which stays the same for as
# long as the service believes it.
load_demo()
{
	# shellcheck source=/dev/null
	. "$DATA/env"
	export DEMO_PASSWORD
	scripts/service/demo
	KEY=$(scripts/service/demo --key "${ENTITYAPI_KEY-}")
	write_env
}

with_demo()
{
	[[ $DEMO == 1 && -f $MANIFESTS/demo.jsonl ]]
}

service_up()
{
	[[ -e $MANIFESTS ]] || die "There is no $MANIFESTS (MANIFESTS)."
	need_packages
	prepare_folders
	build
	if ! private_root_is_current; then
		shim_stop
		cluster_stop
		make_private_root
	fi
	cluster_start
	prepare_database
	read_credentials
	create_superadmin
	find_url
	find_key
	write_env
	apply_manifests
	shim_start
	! with_demo || load_demo
}

service_down()
{
	shim_stop
	cluster_stop
}

# Is anything there to be stopped?
service_running()
{
	shim_running || { [[ -d $STATE/cluster ]] && cluster_running; }
}

# How to log in, and one line to paste.  The SuperAdmin has no key, so that its
# line logs in first.
print_service()
{
	say "" "entityapi answers at $URL" \
		"  in a browser  $URL/console/" "" \
		"  SuperAdmin    $SUPERADMIN / $SUPERADMIN_PASSWORD"
	if with_demo; then
		scripts/service/demo --list | while IFS=$'\t' read -r who what; do
			printf '  %-13s %s / %s\n' "$what" "$who" "$DEMO_PASSWORD"
		done
	fi
	say "" "Settings for a shell: . $DATA/env" "Try:" ""
	if with_demo; then
		say "curl -gsS '$URL$(scripts/service/demo --try)' \
-H 'X-API-Key: $KEY'"
	else
		printf "curl -gsS '%s/auth/me' -H \"Authorization: Bearer\
 \$(curl -sS %s/auth/login -H 'Content-Type: application/json'\
 -d '{\"username\":\"%s\",\"password\":\"%s\"}' |\
 sed 's/.*\"accessToken\": *\"\\\\([^\"]*\\\\)\".*/\\\\1/')\"\n" \
			"$URL" "$URL" "$SUPERADMIN" "$SUPERADMIN_PASSWORD"
	fi
}
