# shellcheck shell=bash
#
# chroot.sh: bare releases of Debian in chroots made by mmdebstrap, on top of
# common.sh.  Used by "matrix" and "check-packages".
#
#   CHROOTS/base      base systems, a tarball a release
#   CHROOTS/packages  what was downloaded
#   CHROOTS/roots     the chroots, gone at the end
#   CHROOTS/logs

CHROOTS=$DATA/matrix
: "${MIRROR:=}"

inside=
# shellcheck disable=SC2317 # called by traps
cleanup()
{
	trap - EXIT
	trap '' INT TERM HUP
	if [[ -n $inside ]]; then
		kill -TERM "$inside" 2>/dev/null || true
		for _ in {1..50}; do
			kill -0 "$inside" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$inside" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$CHROOTS"/roots/*
}

# Run a program that an interruption does not have to wait for.
beside()
{
	local status=0

	"$@" 9>&- &
	inside=$!
	wait "$inside" || status=$?
	inside=
	return "$status"
}

# What is needed for chroots; from here on the end clears away, and nobody else
# works there.
prepare_chroots()
{
	local tool

	((EUID == 0)) || die "$1 makes chroots, and needs root for that."
	need_tool mmdebstrap
	for tool in mmdebstrap unshare chroot; do
		command -v "$tool" >/dev/null || die "There is no $tool."
	done
	mkdir -p "$CHROOTS"/{base,packages,roots,logs}
	exec 9>"$CHROOTS/lock"
	flock -n 9 || die "Another make matrix or check-packages works in\
 $CHROOTS."
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
}


# --- the registry -----------------------------------------------------------

# This machine's settings of apt that say how to reach it, as lines for apt
apt_settings()
{
	apt-config dump --empty=0 --format '%f "%v";%n' Acquire::http \
		Acquire::https Acquire::Check-Valid-Until Acquire::Check-Date \
		Acquire::Retries | grep -v '""' || true
}

# Where this machine has its Debian from
mirror()
{
	local site

	if [[ -n $MIRROR ]]; then
		say "$MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt's variables
	site=$(apt-get indextargets --format '$(LABEL)|$(SITE)|$(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian|[^|]*|//p' | head -n 1)
	[[ -n $site ]] || die "This machine's apt knows no Debian; say MIRROR=..."
	say "${site%/}"
}

# Make or find the base system of a release.  It has what the pages take for
# granted: make, and certificates to download with.
base_system()
{
	local release=$1 tar=$CHROOTS/base/$1.tar line options=()

	[[ -s $tar ]] && return
	while read -r line; do
		options+=("--aptopt=$line")
	done < <(apt_settings)
	TMPDIR=$CHROOTS/roots beside mmdebstrap --quiet --format=tar \
		--variant=minbase --include=make,ca-certificates \
		--aptopt='APT::Keep-Downloaded-Packages "true"' "${options[@]}" \
		"$release" "$tar.new" "$(mirror)" \
		>"$CHROOTS/logs/$release.base" 2>&1 && mv "$tar.new" "$tar"
}

# Unpack it, with the packages that were downloaded before.
make_root()
{
	local release=$1 root=$2

	mkdir -p "$root" "$CHROOTS/packages/$release"
	tar -xf "$CHROOTS/base/$release.tar" -C "$root" --exclude='./dev/*'
	cp -alf "$CHROOTS/packages/$release/." "$root/var/cache/apt/archives/"
	mkdir -p "$root/root/entityapi"
	source_files | tar --null --ignore-failed-read -T - -cf - |
		tar -xf - -C "$root/root/entityapi"
}

keep_packages()
{
	find "$2/var/cache/apt/archives" -maxdepth 1 -name '*.deb' \
		-exec cp -lf -t "$CHROOTS/packages/$1" {} +
}

# Run a command in a chroot.
enter()
{
	beside unshare --mount --pid --ipc --fork --kill-child \
		"$CHECKOUT/scripts/lib/in-chroot" "$@"
}
