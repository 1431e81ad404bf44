# entityapi: a multi-tenant JSON:API service inside PostgreSQL
#
# Two kinds of targets.  The usual PGXS ones (all, install, installcheck,
# clean) build for the server that PG_CONFIG belongs to.  The others (run, up,
# down, test, bench, packages) are the scripts of their names, scripts/*/NAME,
# which need nothing prepared: they install missing packages, then work in
# private folders below DATA.

PG_CONFIG ?= pg_config
PORT ?= 8080
DATA ?= .local
MANIFESTS ?= examples/billing
DEMO ?= 1
BITCODE ?= 1

.DEFAULT_GOAL := all

# The extension

EXTENSION = entityapi
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" \
	entityapi.control)
MODULE_big = entityapi
SOURCES = $(sort $(wildcard extension/*/*.c))
OWN_HEADERS = $(sort $(wildcard extension/*/*.h))
OBJS = $(SOURCES:.c=.o)
DATA_built = entityapi--$(EXTVERSION).sql $(UPDATE_SCRIPTS)
PGFILEDESC = "entityapi - multi-tenant JSON:API service"

INSTALL_PARTS = $(sort $(wildcard extension/install/*.sql))

# What has been released stays as it was, in extension/update/released, for tests only:
# its faults are not installed.  Each of these versions has a way of one step to
# what the parts make now, so that no step goes through the script of another.

RELEASED := $(shell ls extension/update/released | \
	sed -n 's/^entityapi--\([^-]*\)\.sql$$/\1/p' | sort -V)
UPDATE_SCRIPTS = $(RELEASED:%=entityapi--%--$(EXTVERSION).sql)

# What was changed by hand, in each version from that one on
hands_from = $(shell printf 'extension/update/%s.sql\n' $(RELEASED) | \
	sed -n '\,/$(subst .,\.,$(1))\.sql$$,,$$p')

# The warnings are for our own files, so PostgreSQL's headers are the system's.
PG_CPPFLAGS = -Iextension -DEA_VERSION='"$(EXTVERSION)"' \
	$(if $(filter-out 0,$(ANY_MINOR)),-DEA_ANY_MINOR) \
	-isystem $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)
WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wshadow -Wstrict-prototypes \
	-Wdeclaration-after-statement
PG_CFLAGS = $(shell scripts/build/known-flags '$(CC)' $(WARNINGS) $(PATHS) \
	$(CALLS))

# Calls within the library are its own: no other library's function of the same
# name comes in between, and none of them goes through a table of addresses,
# which takes a tenth of what a request misses in the cache of instructions.
CALLS = -fno-plt -fno-semantic-interposition
SHLIB_LINK += $(if $(filter darwin,$(PORTNAME)),,-Wl,-Bsymbolic)

# Two builds of one state are the same, byte by byte, wherever they are made.
# Coverage wants to know where the sources are.
PATHS = $(if $(COVERAGE)$(word 2,$(CURDIR)),,-ffile-prefix-map=$(CURDIR)=.)

# A warning is an error where we look at it, with WERROR=1 as "make test" has
# it: the next compiler will have new ones, and a user's build is to go on.
STRICT := $(filter-out 0,$(WERROR))

# The tests of pg_regress, "setup" first, and the isolation tests, "sign_in"
# first

TESTS_SQL = $(sort $(notdir $(basename $(wildcard sql/*.sql))))
REGRESS = $(filter setup,$(TESTS_SQL)) $(filter-out setup,$(TESTS_SQL))
TESTS_SPECS = $(sort $(notdir $(basename $(wildcard specs/*.spec))))
SPECS = $(filter sign_in,$(TESTS_SPECS)) $(filter-out sign_in,$(TESTS_SPECS))
ifneq ($(SPECS),)
ISOLATION = $(SPECS)
endif

EXTRA_CLEAN = $(OBJS:.o=.d) extension/.strict entityapi.cdx.json

.PHONY: run up down check test test-more test-citus crash attack bench bench-citus bench-growth bench-peers fuzz sanitize check-memory coverage matrix packages check-packages dist \
	sbom shim install-shim uninstall-shim \
	clean-shim check-needs print-cflags print-regress print-specs FORCE

# The scripts need no PGXS: on a bare machine there is none yet.  DATA means
# something else to PGXS, so it goes by another name from here on.

ENTITYAPI_DATA := $(DATA)
override undefine DATA

export PG_CONFIG PORT MANIFESTS DEMO CORS FRONT SHIM_CONFIG TESTS ACCEPT \
	BASE FOLDERS ADD ANY_MINOR \
	WERROR BITCODE RELEASES POSTGRES_SOURCE CITUS_SOURCE CITUS_BUILT BUILD_ON MIRROR RUNS ROUNDS SEED LINTIAN PARTS

run up down test test-more test-citus crash bench bench-citus sanitize check-memory coverage matrix \
packages check-packages dist:
	@exec env DATA='$(ENTITYAPI_DATA)' scripts/*/$@

fuzz:
	@exec env DATA='$(ENTITYAPI_DATA)' FUZZ_SECONDS='$(SECONDS)' \
		scripts/test/fuzz

attack:
	@exec env DATA='$(ENTITYAPI_DATA)' LOAD_SECONDS='$(SECONDS)' \
		scripts/test/attack

bench-growth:
	@exec env DATA='$(ENTITYAPI_DATA)' BENCH_PARTS=growth scripts/bench/bench

compile_commands.json: FORCE
	@exec scripts/edit/compile-commands

bench-peers:
	@exec env DATA='$(ENTITYAPI_DATA)' BENCH_PARTS=peers/run scripts/bench/bench

# PGXS has a target "check" that does nothing, so it is left out for ours.

ifneq ($(filter check,$(MAKECMDGOALS)),)

check:
	@exec env DATA='$(ENTITYAPI_DATA)' scripts/test/check

else

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

ifeq ($(wildcard $(PGXS)),)

all install installcheck clean:
	@echo "PostgreSQL's development files are missing (PG_CONFIG=$(PG_CONFIG))." >&2
	@echo "'make up' installs what is needed." >&2
	@exit 1

else

# Bitcode for JIT inlining needs the very clang PostgreSQL was built with, and
# half of the time of a build.  Tests have JIT off, and go without: BITCODE=0.

PGXS_GLOBAL := $(dir $(PGXS))../Makefile.global
PGXS_CLANG := $(shell sed -n 's/^CLANG *= *//p' $(PGXS_GLOBAL))
ifeq ($(shell command -v $(PGXS_CLANG) 2>/dev/null),)
BITCODE = 0
endif
ifeq ($(BITCODE),0)
override with_llvm := no
endif

# The shim is built and installed as well, but for who packages it by itself.

SHIM ?= 1
ifneq ($(SHIM),0)
all: shim
install: install-shim
uninstall: uninstall-shim
clean: clean-shim
endif

override undefine DATA

include $(PGXS)

# Servers are commonly built without dependency tracking, and then PGXS does
# not rebuild after an edit of a header.

override CFLAGS += -MMD -MP $(if $(STRICT),-Werror,-Wno-error)
-include $(OBJS:.o=.d)
$(OBJS:.o=.bc): $(OWN_HEADERS)

# What is missing is said by name, before the compiler says it in its words.

check-needs:
	@CC='$(CC)' scripts/build/check-needs extension \
		$(if $(filter 0,$(SHIM)),,shim)
$(OBJS) $(OBJS:.o=.bc) shim: | check-needs

# A strict build does not trust what was made since the last one.

ifneq ($(STRICT),)
LENIENT := $(shell find extension -name '*.o' \
	$(if $(wildcard extension/.strict),-newer extension/.strict))
$(LENIENT): FORCE
all: extension/.strict
extension/.strict: $(OBJS)
	@touch $@
endif

# Stored descriptions of the API are those of this very program

extension/openapi/openapi.o extension/openapi/openapi.bc: $(SOURCES) $(OWN_HEADERS)
extension/openapi/openapi.o extension/openapi/openapi.bc: override CPPFLAGS += \
	-DEA_SOURCES='"$(shell cat $(SOURCES) $(OWN_HEADERS) | cksum | cut -d " " -f 1)"'

# What tells the version

VERSIONED = extension/entry/entityapi extension/entry/version \
	extension/management/migrations extension/openapi/openapi
$(VERSIONED:=.o) $(VERSIONED:=.bc): entityapi.control

# The install script is its parts in the order of their names

entityapi--$(EXTVERSION).sql: $(INSTALL_PARTS)
	cat $(INSTALL_PARTS) > $@

$(UPDATE_SCRIPTS): entityapi--%--$(EXTVERSION).sql: $(INSTALL_PARTS) \
		$(wildcard extension/update/*.sql) scripts/build/update-script
	scripts/build/update-script $(call hands_from,$*) -- $(INSTALL_PARTS) > $@

# The shim has its own Makefile; PGXS builds one thing only.

shim:
	$(MAKE) -C shim PG_CONFIG='$(PG_CONFIG)'

# It is no part of the server, and goes where shells and systemd look.

PREFIX ?= /usr/local
SHIM_DESTDIR = $(if $(filter-out /%,$(firstword $(DESTDIR))),$(CURDIR)/)$(DESTDIR)

install-shim: shim
install-shim uninstall-shim:
	$(MAKE) -C shim $(@:-shim=) PG_CONFIG='$(PG_CONFIG)' PREFIX='$(PREFIX)' \
		DESTDIR='$(SHIM_DESTDIR)'

clean-shim:
	$(MAKE) -C shim clean PG_CONFIG='$(PG_CONFIG)'

# What the two programs are linked with, for who must know

sbom: all
	PG_CONFIG='$(PG_CONFIG)' scripts/release/sbom entityapi.so \
		shim/entityapi-shim > entityapi.cdx.json.new
	mv entityapi.cdx.json.new entityapi.cdx.json

# What the scripts ask for

print-cflags:
	@echo $(CPPFLAGS) $(PG_CFLAGS)

print-regress:
	@echo $(REGRESS)

print-specs:
	@echo $(SPECS)

endif

endif
