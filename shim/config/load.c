/*
 * The settings of the shim: one table, three sources.
 *
 * Everything about a setting is in its row of the table below; flags, names
 * of variables, members of the file, --help and --print-config follow from
 * it.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/json_read.h"
#include "base/log.h"
#include "base/nearest.h"
#include "config/check.h"
#include "config/load.h"
#include "config/text_file.h"

#define MASK "********"
#define NAME_SIZE 64

enum setting_type
{
	SETTING_STRING,
	SETTING_INTEGER,
	SETTING_BOOLEAN
};

#define SECRET 1				/* masked when shown; has a *_FILE form */
#define RELOADABLE 2			/* SIGHUP changes it */
#define LIST 4					/* may be an array in the file */

struct setting
{
	const char *name;
	enum setting_type type;
	size_t		offset;
	const char *preset;			/* NULL: computed by apply_computed() */
	long		minimum;
	long		maximum;
	int			flags;
	const char *help;
};

/* How --help calls a value. */
static const char *const type_names[] =
{
	[SETTING_STRING] = "TEXT",
	[SETTING_INTEGER] = "NUMBER",
	[SETTING_BOOLEAN] = "true|false"
};

#define STRING(name, preset, flags, help) \
	{#name, SETTING_STRING, offsetof(struct config, name), preset, 0, 0, \
	flags, help}
#define INTEGER(name, preset, minimum, maximum, flags, help) \
	{#name, SETTING_INTEGER, offsetof(struct config, name), preset, minimum, \
	maximum, flags, help}
#define BOOLEAN(name, preset, flags, help) \
	{#name, SETTING_BOOLEAN, offsetof(struct config, name), preset, 0, 1, \
	flags, help}

static const struct setting settings[] =
{
	STRING(listen, "127.0.0.1:8080", 0,
		   "addresses to listen on, separated by commas: host:port, where "
		   "host is an address (of IPv6 in brackets), a name or * for all, "
		   "or unix:/path"),
	STRING(admin_listen, "", 0,
		   "addresses, as above, that answer /actuator/* only: health, and "
		   "always metrics"),
	STRING(socket_mode, "0660", 0,
		   "permissions of Unix sockets, octal"),
	STRING(front, "loop", 0,
		   "the part that reads HTTP: loop, this program, for any number of "
		   "clients; or civetweb, the library, with a thread for each, behind "
		   "a proxy"),
	STRING(database, "", SECRET,
		   "libpq connection string or URI; empty: PGHOST, PGDATABASE, ..."),
	STRING(replicas, "", SECRET | LIST,
		   "connection strings of hot standbys for reading, separated by "
		   "semicolons or newlines; an array in the file"),
	STRING(nodes, "", SECRET | LIST,
		   "connection strings of the other nodes of a cluster, separated by "
		   "semicolons or newlines; an array in the file"),
	STRING(replica_staleness, "refused", 0,
		   "refused: standbys are used only if the primary waits for them "
		   "(synchronous_commit = remote_apply); allowed: they may be behind"),
	INTEGER(replica_max_lag_ms, "1000", 200, 60000, 0,
			"how far behind a standby may be"),
	INTEGER(read_your_writes_ms, "2000", 0, 600000, 0,
			"how long the primary answers a credential that has written"),
	INTEGER(pool_size, NULL, 1, 1000, 0,
			"database connections; default twice the cores, 4 to 32"),
	INTEGER(pool_writes, NULL, 0, 1000, 0,
			"more database connections, for requests that write, as far as "
			"they get more done; default three times pool_size, 24 at most"),
	INTEGER(pool_wait_ms, "1000", 1, 60000, RELOADABLE,
			"longest wait for its turn and a free connection, then 503"),
	INTEGER(pool_queue, "128", 1, 10000, 0,
			"half as many logins may wait for their share of the pool, the "
			"others get 503 at once"),
	INTEGER(login_pool_share, NULL, 1, 1000, RELOADABLE,
			"connections that logins may hold at once; default a quarter of "
			"the pool"),
	INTEGER(connect_timeout_s, "3", 2, 60, 0,
			"longest time to open a database connection"),
	INTEGER(statement_timeout_ms, "5000", 0, 600000, 0,
			"longest time of one request in the database, then 503; 0: none"),
	INTEGER(threads, "256", 1, 4000, 0,
			"of the front civetweb: clients at once"),
	INTEGER(connections, "10000", 1, 1000000, 0,
			"client connections that are open at once, as far as the limit "
			"of open files allows"),
	INTEGER(max_connections_per_address, "0", 0, 100000, RELOADABLE,
			"the same from one address, then 429; 0: no limit; trusted "
			"proxies have none"),
	INTEGER(max_body, "1048576", 1024, 1073741824, RELOADABLE,
			"bytes of a request body, then 413"),
	INTEGER(max_body_auth, "65536", 1024, 1073741824, RELOADABLE,
			"the same for /auth and /manage"),
	INTEGER(max_url, "8192", 256, 16384, RELOADABLE,
			"bytes of a request target, then 414"),
	INTEGER(max_headers_bytes, "16384", 1024, 32768, RELOADABLE,
			"bytes of all request headers, then 431"),
	INTEGER(max_headers, "60", 8, 63, RELOADABLE,
			"number of request headers, then 431"),
	INTEGER(max_unfinished, "67108864", 1048576, 1099511627776, RELOADABLE,
			"bytes of all requests together that have not come whole; beyond "
			"it those that are at it for longest get 408"),
	INTEGER(body_timeout_ms, "30000", 100, 600000, RELOADABLE,
			"time in which a body must have arrived, then 408"),
	INTEGER(write_timeout_ms, "60000", 100, 3600000, RELOADABLE,
			"time in which a client must have taken an answer, then it is "
			"cut off"),
	INTEGER(request_timeout_ms, "3000", 100, 600000, 0,
			"time in which the headers must have arrived"),
	STRING(keep_alive, "auto", 0,
		   "yes: client connections are reused; no: they are not; auto: yes "
		   "unless trusted_proxies is set or listen has a Unix socket"),
	INTEGER(keep_alive_timeout_ms, "5000", 100, 600000, 0,
			"how long an idle client connection is kept"),
	INTEGER(drain_timeout_ms, "10000", 0, 600000, RELOADABLE,
			"time that requests under way get at the end"),
	INTEGER(sweep_interval_ms, "5000", 0, 3600000, RELOADABLE,
			"how often the database deletes what is over; 0: never"),
	STRING(trusted_proxies, "", RELOADABLE,
		   "networks (CIDR, comma separated) whose X-Forwarded-For is "
		   "believed"),
	BOOLEAN(access_log, "true", RELOADABLE,
			"write a JSON line for each request to stdout"),
	INTEGER(access_log_delay_ms, "100", 0, 10000, 0,
			"longest time that a line of it waits for others; 0: none"),
	BOOLEAN(metrics, "false", RELOADABLE,
			"show metrics at the addresses of listen, too"),
	BOOLEAN(server_timing, "false", RELOADABLE,
			"tell clients in Server-Timing where the time went"),
	BOOLEAN(console, "false", RELOADABLE,
			"serve a console for browsers at /console/, to which / leads"),
	BOOLEAN(compression, "true", RELOADABLE,
			"compress answers for clients that ask for gzip"),
	INTEGER(compression_min, "1024", 1, 1073741824, RELOADABLE,
			"bytes of an answer from which on it is compressed"),
	STRING(cors_origins, "", RELOADABLE,
		   "origins (comma separated) whose web pages may use the service; "
		   "empty: no CORS"),
	INTEGER(cors_max_age_s, "600", 0, 86400, RELOADABLE,
			"how long browsers may keep the answer to a preflight"),
	STRING(security_txt, "", RELOADABLE,
		   "a file that is shown as /.well-known/security.txt (RFC 9116)"),
	STRING(otlp_endpoint, "", 0,
		   "where traces go, by OTLP over HTTP, as "
		   "http://127.0.0.1:4318/v1/traces; empty: nowhere"),
	STRING(otlp_headers, "", SECRET | LIST,
		   "headers for that, \"Name: value\", separated by newlines; an "
		   "array in the file"),
	STRING(otlp_ca_file, "", 0,
		   "certificates (PEM) that its own is checked with; empty: those of "
		   "the system"),
	STRING(otlp_service_name, "entityapi", 0,
		   "service.name of all spans"),
	INTEGER(otlp_delay_ms, "1000", 10, 60000, 0,
			"longest time that a span waits for others"),
	INTEGER(trace_per_million, "0", 0, 1000000, RELOADABLE,
			"of a million requests without a traceparent, so many are traced"),
	STRING(pid_file, "", 0, "file that gets the process id")
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

/* Flags have two slots a setting: its value, and the file of a secret. */
#define FLAG_COUNT (SETTING_COUNT * 2)

/* One value, with the words that name its origin in a message. */
struct given
{
	const char *value;
	char		origin[NAME_SIZE + 32];
};

static void *
field_of(const struct config *config, const struct setting *setting)
{
	return (char *) config + setting->offset;
}

/* pool_size, or with a suffix, as the flag --pool-size. */
static void
flag_name(const struct setting *setting, const char *suffix, char *name)
{
	char	   *p;

	snprintf(name, NAME_SIZE, "%s%s", setting->name, suffix);
	for (p = name; *p != '\0'; p++)
	{
		if (*p == '_')
			*p = '-';
	}
}

static void
variable_name(const struct setting *setting, const char *suffix, char *name)
{
	char	   *p;

	snprintf(name, NAME_SIZE, "ENTITYAPI_%s%s", setting->name, suffix);
	for (p = name; *p != '\0'; p++)
		*p = (char) toupper((unsigned char) *p);
}

/* The value itself, and not the file that holds it. */
static bool
is_secret_slot(int slot)
{
	return slot % 2 == 0 && (settings[slot / 2].flags & SECRET);
}

/* The slot of the flag named by the first "length" bytes, or -1. */
static int
find_flag(const char *name, size_t length)
{
	char		candidate[NAME_SIZE];
	size_t		i;

	for (i = 0; i < FLAG_COUNT; i++)
	{
		const struct setting *setting = &settings[i / 2];

		if (i % 2 == 1 && !(setting->flags & SECRET))
			continue;
		flag_name(setting, i % 2 == 1 ? "-file" : "", candidate);
		if (strlen(candidate) == length &&
			strncmp(candidate, name, length) == 0)
			return (int) i;
	}
	return -1;
}

/*
 * Keeps a value.  Anybody on the machine can read a command line, so a secret
 * is copied, and blanked there.
 */
static bool
keep_flag(struct config_source *source, int slot, char *value)
{
	source->flags[slot] = value;
	if (!is_secret_slot(slot))
		return true;
	source->flags[slot] = strdup(value);
	explicit_bzero(value, strlen(value));
	if (source->flags[slot] == NULL)
		complain("out of memory");
	return source->flags[slot] != NULL;
}

bool
config_parse_flags(int *argc, char **argv, struct config_source *source)
{
	int			kept = 0;
	int			i;

	source->file = getenv("ENTITYAPI_CONFIG");
	source->flags = calloc(FLAG_COUNT, sizeof(char *));
	if (source->flags == NULL)
	{
		complain("out of memory");
		return false;
	}

	for (i = 0; i < *argc; i++)
	{
		char	   *argument = argv[i];
		char	   *equals = strchr(argument, '=');
		size_t		length;
		bool		is_config;
		int			slot;

		if (strncmp(argument, "--", 2) != 0)
		{
			argv[kept++] = argument;
			continue;
		}
		length = equals ? (size_t) (equals - argument) : strlen(argument);
		is_config = length == 8 && strncmp(argument, "--config", 8) == 0;
		slot = find_flag(argument + 2, length - 2);
		if (slot < 0 && !is_config)
		{
			argv[kept++] = argument;
			continue;
		}
		if (equals == NULL && i + 1 == *argc)
		{
			complain("%s needs a value", argument);
			return false;
		}
		if (equals == NULL)
			i++;
		if (is_config)
			source->file = equals ? equals + 1 : argv[i];
		else if (source->flags[slot] != NULL)
		{
			complain("%.*s is given twice", (int) length, argument);
			return false;
		}
		else if (!keep_flag(source, slot, equals ? equals + 1 : argv[i]))
			return false;
	}
	*argc = kept;
	argv[kept] = NULL;
	return true;
}

static bool
store_value(struct config *config, const struct setting *setting,
			const struct given *given)
{
	void	   *field = field_of(config, setting);
	const char *value = given->value;
	char	   *end;
	long		number;

	switch (setting->type)
	{
		case SETTING_STRING:
			free(*(char **) field);
			*(char **) field = strdup(value);
			return *(char **) field != NULL;

		case SETTING_BOOLEAN:
			if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
			{
				complain("%s: \"%s\" is neither true nor false",
						 given->origin, value);
				return false;
			}
			*(bool *) field = value[0] == 't';
			return true;

		case SETTING_INTEGER:
			errno = 0;
			number = strtol(value, &end, 10);
			if (!isdigit((unsigned char) value[0]) || *end != '\0' ||
				errno != 0 || number < setting->minimum ||
				number > setting->maximum)
			{
				complain("%s: \"%s\" is not a whole number from %ld to %ld",
						 given->origin, value, setting->minimum,
						 setting->maximum);
				return false;
			}
			*(long *) field = number;
			return true;
	}
	return false;
}

/* Stores a value that is given directly, or by the file of a secret. */
static bool
store_given(struct config *config, const struct setting *setting,
			const struct given *direct, const struct given *file)
{
	struct given secret;
	char	   *text;
	bool		stored;

	if (direct->value != NULL && file->value != NULL)
	{
		complain("%s and %s contradict each other", direct->origin,
				 file->origin);
		return false;
	}
	if (direct->value != NULL)
		return store_value(config, setting, direct);
	if (file->value == NULL)
		return true;
	text = text_file_read(file->origin, file->value);
	if (text == NULL)
		return false;
	secret = *file;
	secret.value = text;
	stored = store_value(config, setting, &secret);
	free(text);
	return stored;
}

static bool
load_flags_and_variables(struct config *config,
						 const struct config_source *source)
{
	bool		fine = true;
	size_t		i;

	for (i = 0; i < SETTING_COUNT; i++)
	{
		const struct setting *setting = &settings[i];
		struct given given[2] = {{0}, {0}};
		char		name[NAME_SIZE];
		int			form;

		for (form = 0; form < 2; form++)
		{
			given[form].value = source->flags[i * 2 + (size_t) form];
			flag_name(setting, form ? "-file" : "", name);
			snprintf(given[form].origin, sizeof(given[form].origin), "--%s",
					 name);
		}
		if (given[0].value == NULL && given[1].value == NULL)
		{
			for (form = 0; form <= (setting->flags & SECRET ? 1 : 0); form++)
			{
				variable_name(setting, form ? "_FILE" : "", name);
				given[form].value = getenv(name);
				snprintf(given[form].origin, sizeof(given[form].origin),
						 "%s", name);
			}
		}
		fine = store_given(config, setting, &given[0], &given[1]) && fine;
	}
	return fine;
}

/* The text of a member of the file, as store_value() wants it. */
static bool
text_of_member(const struct setting *setting, const json_t *member,
			   bool is_file, char *number, struct given *given)
{
	enum setting_type type = is_file ? SETTING_STRING : setting->type;

	if (type == SETTING_STRING && json_is_string(member))
		given->value = json_string_value(member);
	else if (type == SETTING_BOOLEAN && json_is_boolean(member))
		given->value = json_is_true(member) ? "true" : "false";
	else if (type == SETTING_INTEGER && json_is_integer(member))
	{
		snprintf(number, NAME_SIZE, "%lld",
				 (long long) json_integer_value(member));
		given->value = number;
	}
	else
	{
		complain("%s: wrong type of value", given->origin);
		return false;
	}
	return true;
}

/* Arrays of text become one text, an item a line. */
static void
join_lists(json_t *root)
{
	size_t		i;

	for (i = 0; i < SETTING_COUNT; i++)
	{
		const json_t *list = json_object_get(root, settings[i].name);
		struct buffer text = {0};
		size_t		k;

		if (!(settings[i].flags & LIST) || !json_is_array(list))
			continue;
		for (k = 0; k < json_array_size(list); k++)
		{
			const char *item = json_string_value(json_array_get(list, k));

			/* what is no text makes it the wrong type, which is told later */
			if (item == NULL)
				break;
			buffer_string(&text, item);
			buffer_char(&text, '\n');
		}
		if (k == json_array_size(list) && !text.failed)
			json_object_set_new(root, settings[i].name,
								json_string(text.data ? text.data : ""));
		buffer_free(&text);
	}
}

static bool
load_members(struct config *config, json_t *root, const char *path)
{
	const char *key;
	json_t	   *member;
	bool		fine = true;
	size_t		i;

	join_lists(root);
	json_object_foreach(root, key, member)
	{
		struct nearest nearest;
		bool		known = false;

		nearest_begin(&nearest, key, strlen(key));
		for (i = 0; i < SETTING_COUNT && !known; i++)
		{
			const char *rest = key + strlen(settings[i].name);

			known = strncmp(key, settings[i].name,
							strlen(settings[i].name)) == 0 &&
				(*rest == '\0' || ((settings[i].flags & SECRET) &&
								   strcmp(rest, "_file") == 0));
			nearest_offer(&nearest, settings[i].name);
		}
		if (!known)
		{
			complain("%s: unknown setting \"%s\"%s%s%s", path, key,
					 nearest.best[0] ? "; did you mean " : "", nearest.best,
					 nearest.best[0] ? "?" : "");
			fine = false;
		}
	}

	for (i = 0; i < SETTING_COUNT; i++)
	{
		const struct setting *setting = &settings[i];
		struct given given[2] = {{0}, {0}};
		char		number[NAME_SIZE];
		int			form;

		for (form = 0; form <= (setting->flags & SECRET ? 1 : 0); form++)
		{
			char		name[NAME_SIZE];

			snprintf(name, sizeof(name), "%s%s", setting->name,
					 form ? "_file" : "");
			snprintf(given[form].origin, sizeof(given[form].origin),
					 "\"%s\" of the configuration file", name);
			member = json_object_get(root, name);
			if (member != NULL)
				fine = text_of_member(setting, member, form == 1, number,
									  &given[form]) && fine;
		}
		fine = store_given(config, setting, &given[0], &given[1]) && fine;
	}
	return fine;
}

static bool
load_file(struct config *config, const char *path)
{
	json_error_t error;
	json_t	   *root = json_read_file(path, JSON_REJECT_DUPLICATES, &error);
	bool		fine;

	if (root == NULL && error.line > 0)
		complain("%s:%d: %s", path, error.line, error.text);
	else if (root == NULL)
		complain("%s", error.text);
	else if (!json_is_object(root))
		complain("%s: not a JSON object", path);
	fine = json_is_object(root) && load_members(config, root, path);
	json_decref(root);
	return fine;
}

struct config *
config_load(const struct config_source *source)
{
	struct config *config = calloc(1, sizeof(*config));
	bool		fine = config != NULL;
	size_t		i;

	if (fine)
		config->pool_writes = -1;
	for (i = 0; i < SETTING_COUNT && fine; i++)
	{
		struct given given = {settings[i].preset, "default"};

		if (given.value != NULL)
			fine = store_value(config, &settings[i], &given);
	}
	if (fine && source->file != NULL)
		fine = load_file(config, source->file);
	if (fine)
		fine = load_flags_and_variables(config, source);
	if (fine)
		fine = config_check(config);
	if (!fine)
	{
		config_free(config);
		return NULL;
	}
	return config;
}

struct config *
config_reload(const struct config_source *source, struct config *old)
{
	struct config *config = config_load(source);
	size_t		i;

	if (config == NULL)
		return NULL;
	for (i = 0; i < SETTING_COUNT; i++)
	{
		const struct setting *setting = &settings[i];
		void	   *now = field_of(config, setting);
		const void *before = field_of(old, setting);
		bool		changed = false;

		if (setting->flags & RELOADABLE)
			continue;
		switch (setting->type)
		{
			case SETTING_STRING:
				changed = strcmp(*(char **) now, *(char *const *) before) != 0;
				if (changed)
				{
					char	   *copy = strdup(*(char *const *) before);

					if (copy == NULL)
					{
						config_free(config);
						return NULL;
					}
					free(*(char **) now);
					*(char **) now = copy;
				}
				break;
			case SETTING_INTEGER:
				changed = *(long *) now != *(const long *) before;
				*(long *) now = *(const long *) before;
				break;
			case SETTING_BOOLEAN:
				changed = *(bool *) now != *(const bool *) before;
				*(bool *) now = *(const bool *) before;
				break;
		}
		if (changed)
			log_event(LOG_WARNING, "reload", NULL, NULL,
					  "a change of %s needs a restart", setting->name);
	}
	/* It was told to proxies at the start, whatever these are now. */
	config->reuse_connections = old->reuse_connections;
	if (config->login_pool_share > config->pool_size)
		config->login_pool_share = config->pool_size;
	config->previous = old;
	return config;
}

void
config_print(const struct config *config, struct buffer *out)
{
	size_t		i;

	buffer_string(out, "{\n");
	for (i = 0; i < SETTING_COUNT; i++)
	{
		const struct setting *setting = &settings[i];
		const void *field = field_of(config, setting);

		buffer_printf(out, "  \"%s\": ", setting->name);
		if (setting->type == SETTING_INTEGER)
			buffer_printf(out, "%ld", *(const long *) field);
		else if (setting->type == SETTING_BOOLEAN)
			buffer_string(out, *(const bool *) field ? "true" : "false");
		else if ((setting->flags & SECRET) &&
				 (*(char *const *) field)[0] != '\0')
			buffer_json_string(out, MASK);
		else
			buffer_json_string(out, *(char *const *) field);
		buffer_string(out, i + 1 < SETTING_COUNT ? ",\n" : "\n");
	}
	buffer_string(out, "}\n");
}

void
config_help(struct buffer *out)
{
	char		name[NAME_SIZE];
	size_t		i;

	for (i = 0; i < SETTING_COUNT; i++)
	{
		const struct setting *setting = &settings[i];
		bool		preset = setting->preset && setting->preset[0] != '\0';
		bool		reload = setting->flags & RELOADABLE;

		flag_name(setting, "", name);
		buffer_printf(out, "  --%s %s", name, type_names[setting->type]);
		if (preset || reload)
			buffer_printf(out, "  (%s%s%s%s)", preset ? "default " : "",
						  preset ? setting->preset : "",
						  preset && reload ? "; " : "",
						  reload ? "SIGHUP changes it" : "");
		buffer_printf(out, "\n        %s\n", setting->help);
		if (setting->flags & SECRET)
			buffer_printf(out, "  --%s-file FILE\n        a file that holds "
						  "the same\n", name);
	}
}

void
config_offer_flags(struct nearest *nearest)
{
	char		name[NAME_SIZE + 2] = "--";
	size_t		i;

	for (i = 0; i < FLAG_COUNT; i++)
	{
		if (i % 2 == 1 && !(settings[i / 2].flags & SECRET))
			continue;
		flag_name(&settings[i / 2], i % 2 == 1 ? "-file" : "", name + 2);
		nearest_offer(nearest, name);
	}
}

void
config_free(struct config *config)
{
	while (config != NULL)
	{
		struct config *previous = config->previous;
		size_t		i;

		for (i = 0; i < SETTING_COUNT; i++)
		{
			if (settings[i].type == SETTING_STRING)
				free(*(char **) field_of(config, &settings[i]));
		}
		free(config->networks);
		free(config->security_text);
		free(config);
		config = previous;
	}
}

void
config_source_free(struct config_source *source)
{
	int			i;

	for (i = 0; source->flags != NULL && i < (int) FLAG_COUNT; i++)
	{
		if (is_secret_slot(i))
			free(source->flags[i]);
	}
	free(source->flags);
	source->flags = NULL;
}
