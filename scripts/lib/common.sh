# shellcheck shell=bash
#
# common.sh: what the scripts behind "make run", "up", "down", "test" and
# "bench" share.
#
# Everything a script makes lies below two folders.  DATA belongs to the
# caller; STATE belongs to the user that runs PostgreSQL and the shim, and is
# the same folder unless that user cannot reach DATA:
#
#   DATA/env              the settings of the running service, for a shell
#   DATA/credentials      the generated passwords
#   STATE/root            PostgreSQL's own files by link, ours by copy
#   STATE/cluster         the database cluster
#   STATE/socket          the folder of its socket
#   STATE/postgresql.log, shim.json, shim.log, shim.pid
#
# STATE/root is what makes the system's PostgreSQL untouched: a server looks
# for its libraries and extensions relative to its executable, so a copy of
# the executable in such a tree finds the entityapi that was put beside it.

set -euo pipefail
umask 022

# Make's own variables would leak into the makes called below.
unset MAKEFLAGS MFLAGS MAKELEVEL

CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$CHECKOUT"

: "${PG_CONFIG:=pg_config}" "${PORT:=8080}" "${DATA:=.local}"
: "${MANIFESTS:=examples/billing}" "${DEMO:=1}"
[[ $DATA == /* ]] || DATA=$CHECKOUT/$DATA

# Tests that "make test-more" runs, and "make test" does not
TESTS_APART="t/console/console.t t/openapi/tools.t t/whole/clients.t"
TESTS_APART+=" t/console/many_entities.t t/whole/supply.t"

# One address, superuser and database for every cluster made here; the port
# only names the socket.
PGPORT=5432 PGUSER=postgres PGDATABASE=entityapi
export PGPORT PGUSER PGDATABASE
unset PGHOST PGHOSTADDR PGPASSWORD PGSERVICE PGOPTIONS

SHIM_ROLE=entityapi_shim
INSTALL_SCRIPT=entityapi--$(sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" \
	entityapi.control).sql

say()
{
	printf '%s\n' "$@"
}

die()
{
	printf '%s\n' "$@" >&2
	exit 1
}

# Does a process of ours live under the id in this file?  The id may have been
# given to somebody else since, hence the look at its command line.
alive()
{
	local pidfile=$1 word=$2 pid

	pid=$(cat "$pidfile" 2>/dev/null) || return 1
	[[ -n $pid ]] && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" |
		grep -qF -- "$word"
}

# Become a command, as the user that owns STATE.
exec_service()
{
	cd /
	if ((EUID == 0)); then
		exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
	fi
	exec "$@"
}

as_service()
{
	(exec_service "$@")
}

secret()
{
	local bytes

	bytes=$(head -c 512 /dev/urandom | LC_ALL=C tr -dc '0-9A-Za-z')
	printf '%s' "${bytes:0:24}"
}


# --- packages ---------------------------------------------------------------

server_is_complete()
{
	local share

	share=$("$PG_CONFIG" --sharedir 2>/dev/null) &&
		[[ -x $("$PG_CONFIG" --bindir)/initdb ]] &&
		[[ -f $("$PG_CONFIG" --includedir-server)/postgres.h ]] &&
		[[ -f $share/extension/pgcrypto.control ]]
}

# The packages of the server that PG_CONFIG belongs to, or, without one, of the
# newest that the distribution has and we support.
server_packages()
{
	local major

	major=$("$PG_CONFIG" --version 2>/dev/null |
		sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p') || true
	[[ -n $major ]] || major=$(
		apt-cache search --names-only '^postgresql-server-dev-1[5-8]$' |
			sed -n 's/^postgresql-server-dev-\([0-9]*\) .*/\1/p' |
			sort -n | tail -n 1
	)
	[[ -n $major ]] || die "This release has no package of PostgreSQL 15 to 18.
PostgreSQL's own repository has them: https://wiki.postgresql.org/wiki/Apt"
	say "postgresql-$major" "postgresql-server-dev-$major"
}

missing_packages()
{
	local wanted=(gcc libc6-dev libjansson-dev libcivetweb-dev libyaml-dev
		libpq-dev libssl-dev libcurl4-openssl-dev zlib1g-dev perl
		libipc-run-perl curl ca-certificates)

	not_installed "${wanted[@]}"
	server_is_complete || say server
}

# Those of the packages named that dpkg does not have
not_installed()
{
	printf '%s\n' "$@" | grep -vxF -f <(
		dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
			2>/dev/null | sed -n 's/^installed //p'
	) || true
}

# What is there decides more than the names of packages: a server or a library
# may be too old, or come from elsewhere.
need_packages()
{
	need_names
	CC=${CC:-gcc} scripts/build/check-needs extension shim ||
		die "Nothing has been built."
}

need_names()
{
	local major

	major=$("$PG_CONFIG" --version 2>/dev/null |
		sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p') || true
	[[ -z $major ]] || ((major >= 15 && major <= 18)) ||
		die "PostgreSQL 15 to 18 is needed, and $PG_CONFIG is of $major."

	if ! command -v apt-get >/dev/null; then
		server_is_complete ||
			die "PostgreSQL 15 to 18 with its development files is needed\
 (PG_CONFIG=$PG_CONFIG)."
		return
	fi

	get_packages "$(missing_packages)"
	server_is_complete ||
		die "PostgreSQL's files are still not found (PG_CONFIG=$PG_CONFIG)."
}

# Install these, one a line, or say what would.
get_packages()
{
	local missing=$1 become=()

	[[ -n $missing ]] || return 0
	if ((EUID != 0)); then
		if ! command -v sudo >/dev/null; then
			die "Packages are missing. Type this, then try again:" "" \
				"    su -c 'apt-get update && apt-get install -y $(
					package_names <<<"$missing")'"
		fi
		become=(sudo)
	fi
	(install_packages "$missing")
}

# A program beyond those, from the package of the given or of the same name.
need_tool()
{
	# shellcheck disable=SC2034 # it is of install_packages
	local become=()

	! command -v "$1" >/dev/null || return 0
	command -v apt-get >/dev/null || return 1
	((EUID == 0)) || become=(sudo)
	(install_packages "${2:-$1}")
}

# Packages that single tests want and are skipped without.  Theirs are services
# that would start by themselves, which a policy prevents meanwhile.
want_packages()
{
	local missing=() name policy=/usr/sbin/policy-rc.d become=()

	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null |
			grep -qx installed || missing+=("$name")
	done
	((${#missing[@]} > 0)) || return 0
	command -v apt-get >/dev/null || return 0
	if ((EUID != 0)); then
		sudo -n true 2>/dev/null || return 0
		become=(sudo)
	fi
	(
		if [[ ! -e $policy ]]; then
			trap '"${become[@]}" rm -f "$policy"' EXIT
			printf '#!/bin/sh\nexit 101\n' |
				"${become[@]}" tee "$policy" >/dev/null
			"${become[@]}" chmod 755 "$policy"
		fi
		"${become[@]}" apt-get -q update &&
			"${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q \
				install -y --no-install-recommends "${missing[@]}"
	) >/dev/null 2>&1 ||
		say "Not installed: ${missing[*]}; tests that want it are skipped."
}

# Part of need_packages, in a subshell of its own, whose end runs the trap.
# The package of a server starts a cluster, which nobody asked for; a setting
# of its administration tools, present during the installation only, prevents
# that.
install_packages()
{
	conf=/etc/postgresql-common/createcluster.d/entityapi.conf
	apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)

	"${apt[@]}" update
	packages=$(package_names <<<"$1")
	say "Installing $packages"

	if [[ ! -e $conf ]]; then
		trap '"${become[@]}" rm -f "$conf"' EXIT
		"${become[@]}" mkdir -p "${conf%/*}"
		"${become[@]}" tee "$conf" >/dev/null <<<'create_main_cluster = false'
	fi
	# shellcheck disable=SC2086
	"${apt[@]}" install -y --no-install-recommends $packages
}

# From the answer of missing_packages to words for apt-get
package_names()
{
	local name

	while read -r name; do
		if [[ $name == server ]]; then
			server_packages
		else
			say "$name"
		fi
	done | tr '\n' ' ' | sed 's/ $//'
}


# --- folders ----------------------------------------------------------------

# Make DATA and find or make STATE.  STATE lies elsewhere, under a link
# DATA/state, when the service's user cannot come into DATA.
prepare_folders()
{
	local elsewhere

	mkdir -p "$DATA"
	DATA=$(cd "$DATA" && pwd -P)

	if ((EUID == 0)) && ! id postgres >/dev/null 2>&1; then
		useradd --system --no-create-home --shell /usr/sbin/nologin postgres
	fi

	STATE=$DATA
	if ! as_service test -x "$DATA"; then
		elsewhere=$(readlink -f "$DATA/state" 2>/dev/null) || elsewhere=
		if [[ ! -O $elsewhere || ! -d $elsewhere ]]; then
			elsewhere=$(mktemp -d /var/tmp/entityapi.XXXXXXXX)
			chmod 755 "$elsewhere"
			ln -sfn "$elsewhere" "$DATA/state"
		fi
		STATE=$elsewhere
	fi

	# One script at a time; the others wait.
	exec 9>"$DATA/lock"
	flock 9

	SERVER_BIN=$("$PG_CONFIG" --bindir)
	PRIVATE_BIN=$STATE/root$SERVER_BIN
	PATH=$SERVER_BIN:$PATH
}

# A folder for the service's user alone.
private_folder()
{
	[[ -d $1 ]] || mkdir -m 700 "$1"
	((EUID != 0)) || chown postgres: "$1"
}

# The path of a socket must fit into 107 bytes, so a deep DATA gets a short
# folder elsewhere, by a link.
prepare_socket()
{
	local short

	if ((${#STATE} < 80)) && [[ ! -L $STATE/socket ]]; then
		private_folder "$STATE/socket"
	elif ! as_service test -O "$STATE/socket/."; then
		short=$(mktemp -d /tmp/entityapi.XXXXXXXX)
		private_folder "$short"
		ln -sfn "$short" "$STATE/socket"
	fi
	PGHOST=$(readlink -f "$STATE/socket")
	export PGHOST
}


# --- building and installing ------------------------------------------------

# clang, or the one that PostgreSQL's development files come with
clang_program()
{
	command -v clang || command -v "$(sed -n 's/^CLANG *= *//p' \
		"$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")"
}

build()
{
	if ! make --no-print-directory -j"$(nproc)" all \
		>"$DATA/build.log" 2>&1; then
		tail -n 40 "$DATA/build.log" >&2
		die "The build failed; all of it: $DATA/build.log"
	fi
}

# The sources, as names that end in NUL: those that git knows, or all but what
# .gitignore is about.
source_files()
{
	if [[ -e .git ]] && command -v git >/dev/null; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -type f ! -path './.local*' ! -path './debian/*/*' \
			! -path '*/node_modules/*' ! -name '*.[od]' ! -name '*.bc' \
			! -name '*.so' ! -name '*.zip' ! -name '.strict' \
			! -name '.build-flags' ! -path './entityapi--*.sql' \
			! -path './entityapi.cdx.json*' ! -path './compile_commands.json' \
			! -path './.cache/*' ! -path './shim/.checks/*' \
			! -path './shim/entityapi-shim*[!e]' \
			! -path ./shim/entityapi-shim -print0
		find debian/source -type f -print0
	fi
}

# A tree of its own, as objects of one compiler's flags are not those of
# another.  It is made anew when a file has gone: what tests and builds find by
# a pattern must not be there any more, nor what was built of it.
copy_of_tree()
{
	local files

	files=$(git -C "$CHECKOUT" ls-files | LC_ALL=C sort)
	if [[ -e $1 && $(LC_ALL=C comm -23 \
		<(cat "$1/.copied" 2>/dev/null || say unknown) - <<<"$files") ]]; then
		rm -rf "$1"
	fi
	mkdir -p "$1"
	say "$files" >"$1/.copied"
	git -C "$CHECKOUT" ls-files -z |
		(cd "$CHECKOUT" && xargs -0 cp --parents -u -t "$1")
}

# The server's own in a folder of it, which STATE/root has as well
server_files()
{
	find "$1" -mindepth 1 -maxdepth 1 ! -path "$1/extension" \
		! -name 'entityapi*' ! -name bitcode
}

# Modules that were installed since STATE/root was made, say
missing_in_private_root()
{
	local share lib file

	share=$("$PG_CONFIG" --sharedir)
	lib=$("$PG_CONFIG" --pkglibdir)
	{
		server_files "$share"
		server_files "$share/extension"
		server_files "$lib"
	} | while IFS= read -r file; do
		[[ -L $STATE/root$file || -e $STATE/root$file ]] || say "$file"
	done
}

# Is STATE/root what would be installed now?
private_root_is_current()
{
	local ext scripts

	# What was made here: an earlier version's script may still lie around.
	ext=$STATE/root$("$PG_CONFIG" --sharedir)/extension
	scripts=("$INSTALL_SCRIPT" entityapi--*--"${INSTALL_SCRIPT#entityapi--}")
	cmp -s "$SERVER_BIN/postgres" "$PRIVATE_BIN/postgres" &&
		[[ -z $(missing_in_private_root) ]] &&
		[[ ${CITUS_BUILT-} == "$(cat "$STATE/root/citus" 2>/dev/null)" ]] &&
		cmp -s entityapi.so \
			"$STATE/root$("$PG_CONFIG" --pkglibdir)/entityapi.so" &&
		cmp -s entityapi.control "$ext/entityapi.control" &&
		cmp -s <(cat "${scripts[@]}") \
			<(cd "$ext" && cat "${scripts[@]}" 2>/dev/null) &&
		cmp -s shim/entityapi-shim "$PRIVATE_BIN/entityapi-shim"
}

# Fill STATE/root anew.  The cluster and the shim must not be running.
make_private_root()
{
	local share lib dir

	share=$("$PG_CONFIG" --sharedir)
	lib=$("$PG_CONFIG" --pkglibdir)
	rm -rf "$STATE/root"
	mkdir -p "$PRIVATE_BIN"
	cp "$SERVER_BIN/postgres" "$PRIVATE_BIN/postgres"
	for dir in "$share" "$share/extension" "$lib"; do
		mkdir -p "$STATE/root$dir"
		server_files "$dir" | xargs -rd '\n' ln -s -t "$STATE/root$dir"
	done
	# Citus lies beside ours where it is wanted (scripts/test/citus).
	if [[ -n ${CITUS_BUILT-} ]]; then
		cp -r "$CITUS_BUILT/." "$STATE/root"
		say "$CITUS_BUILT" >"$STATE/root/citus"
	fi
	make --no-print-directory -s install DESTDIR="$STATE/root" \
		PREFIX=/usr/local >>"$DATA/build.log" 2>&1 &&
		cp shim/entityapi-shim "$PRIVATE_BIN" ||
		die "The installation failed; see $DATA/build.log"
}


# --- the cluster ------------------------------------------------------------

# psql as superuser, quiet, stopping at the first error
sql()
{
	psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

cluster_running()
{
	as_service "$SERVER_BIN/pg_ctl" -D "$STATE/cluster" status >/dev/null 2>&1
}

# Arguments are further lines for the cluster's configuration.
cluster_start()
{
	local version locale=C program

	version=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
	if [[ ! -d $STATE/cluster ]]; then
		private_folder "$STATE/cluster.new"
		! locale -a | grep -qiE '^C\.utf-?8$' || locale=C.UTF-8
		as_service "$SERVER_BIN/initdb" -D "$STATE/cluster.new" \
			--username=postgres --auth=trust --encoding=UTF8 \
			--locale="$locale" --data-checksums >"$DATA/initdb.log" 2>&1 ||
			die "initdb failed; see $DATA/initdb.log"
		as_service sh -c 'echo "include '\''entityapi.conf'\''" >>"$1"' \
			- "$STATE/cluster.new/postgresql.conf"
		mv "$STATE/cluster.new" "$STATE/cluster"
	fi

	[[ $(as_service cat "$STATE/cluster/PG_VERSION") == "$version" ]] ||
		die "$STATE/cluster was made by another major version of PostgreSQL\
 than $version."

	prepare_socket
	! cluster_running || return 0

	# The socket is closed to other users, so trust behind it is no hole.
	# Inlining by JIT gains nothing here, and costs time on every first call.
	{
		cat <<-CONF
			listen_addresses = ''
			port = $PGPORT
			unix_socket_directories = '$PGHOST'
			max_connections = 60
			shared_buffers = 128MB
			max_locks_per_transaction = 1024
			jit = off
			log_line_prefix = '%m [%p] %q%u@%d '
			log_parameter_max_length = 0
			log_parameter_max_length_on_error = 0
			cluster_name = 'entityapi'
		CONF
		printf '%s\n' "$@"
		[[ -z ${POSTGRES_CONF-} ]] || printf '%s\n' "$POSTGRES_CONF"
	} | as_service sh -c 'cat >"$1"' - "$STATE/cluster/entityapi.conf"

	# POSTGRES_UNDER is a program to run the server under, with its options.
	program=$PRIVATE_BIN/postgres
	if [[ -n ${POSTGRES_UNDER-} ]]; then
		program=$PRIVATE_BIN/postgres-under
		printf '#!/bin/sh\nexec %s %s "$@"\n' "$POSTGRES_UNDER" \
			"$PRIVATE_BIN/postgres" >"$program"
		chmod 755 "$program"
	fi
	touch "$STATE/postgresql.log"
	((EUID != 0)) || chown postgres: "$STATE/postgresql.log"
	# It takes minutes under Valgrind; what cannot start ends at once.
	if ! as_service "$SERVER_BIN/pg_ctl" -D "$STATE/cluster" -w -s -t 600 \
		-p "$program" -l "$STATE/postgresql.log" start 9>&-; then
		tail -n 20 "$STATE/postgresql.log" >&2
		die "PostgreSQL does not start; see $STATE/postgresql.log"
	fi
}

cluster_stop()
{
	[[ -d $STATE/cluster ]] && cluster_running || return 0
	as_service "$SERVER_BIN/pg_ctl" -D "$STATE/cluster" -w -s -m fast stop
}
