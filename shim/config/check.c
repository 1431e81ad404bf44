#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/buffer.h"
#include "base/log.h"
#include "config/check.h"
#include "config/text_file.h"
#include "connections/listen.h"
#include "database/nodes.h"
#include "database/replica_watch.h"
#include "database/replicas.h"
#include "http/cors.h"

/* Whether a pool has more connections than the front has clients at once. */
static bool
lacks_threads(const struct config *config)
{
	return strcmp(config->front, "civetweb") == 0 &&
		config->pool_size > config->threads;
}

/* The defaults that depend on the machine or on other settings. */
static void
apply_computed(struct config *config)
{
	if (config->pool_size == 0)
	{
		long		cores = sysconf(_SC_NPROCESSORS_ONLN);

		config->pool_size = cores > 16 ? 32 : cores > 2 ? cores * 2 : 4;
		if (lacks_threads(config))
			config->pool_size = config->threads;
	}
	if (config->pool_writes < 0)
		config->pool_writes = config->pool_size < 8 ?
			config->pool_size * 3 : 24;
	if (config->login_pool_share == 0)
		config->login_pool_share =
			config->pool_size >= 8 ? config->pool_size / 4 : 1;
	config->reuse_connections = strcmp(config->keep_alive, "yes") == 0 ||
		(strcmp(config->keep_alive, "auto") == 0 &&
		 config->network_count == 0 && !listen_has_socket(config->listen));
}

static bool
parse_networks(struct config *config)
{
	char	   *list = strdup(config->trusted_proxies);
	char	   *state = NULL;
	char	   *item;
	bool		fine = list != NULL;

	config->networks = calloc(strlen(config->trusted_proxies) / 2 + 1,
							  sizeof(struct network));
	fine = fine && config->networks != NULL;
	for (item = fine ? strtok_r(list, ", ", &state) : NULL; item != NULL;
		 item = strtok_r(NULL, ", ", &state))
	{
		struct network *network = &config->networks[config->network_count];

		if (address_parse_network(item, &network->address, &network->bits))
			config->network_count++;
		else
		{
			complain("trusted_proxies: \"%s\" is not a network", item);
			fine = false;
		}
	}
	free(list);
	return fine;
}

/* Three or four octal digits */
static bool
parse_mode(struct config *config)
{
	const char *text = config->socket_mode;
	size_t		length = strlen(text);

	config->socket_mode_bits = strtol(text, NULL, 8);
	if (length >= 3 && length <= 4 && strspn(text, "01234567") == length &&
		config->socket_mode_bits <= 0777)
		return true;
	complain("socket_mode: \"%s\" is not an octal number like 0660", text);
	return false;
}

/* How many lines of a text are a field of this name? */
static int
count_fields(const char *text, const char *name)
{
	size_t		length = strlen(name);
	int			count = 0;

	while (text != NULL)
	{
		count += strncasecmp(text, name, length) == 0 && text[length] == ':';
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return count;
}

/* What RFC 9116 demands, so that a wrong file is not shown for years. */
static bool
read_security_txt(struct config *config)
{
	char	   *text;

	if (config->security_txt[0] == '\0')
		return true;
	text = text_file_read("security_txt", config->security_txt);
	config->security_text = text;
	if (text == NULL)
		return false;
	if (count_fields(text, "Contact") > 0 &&
		count_fields(text, "Expires") == 1 &&
		utf8_is_valid(text, strlen(text)))
		return true;
	complain("security_txt: \"%s\" must be UTF-8 and have a line Contact: "
			 "and one line Expires:", config->security_txt);
	return false;
}

/*
 * Complains in libpq's words, which are freed.  They repeat a piece of the
 * text in quotes: where that may hold a password, none is shown, as any could
 * be one.
 */
static void
complain_of_conninfo(const char *setting, const char *text, char *words)
{
	static const char sign[] = "\"=\"";
	bool		secret = strcasestr(text, "pass") != NULL ||
		strchr(text, '@') != NULL;
	char	   *open = words ? strchr(words, '"') : NULL;
	char	   *close = words ? strrchr(words, '"') : NULL;

	if (words != NULL)
		words[strcspn(words, "\n")] = '\0';
	if (open != NULL && strncmp(open, sign, strlen(sign)) == 0)
		open = strchr(open + strlen(sign), '"');
	if (words == NULL)
		complain("%s: out of memory", setting);
	else if (secret && open != NULL && close > open)
		complain("%s is no connection string: %.*s***%s", setting,
				 (int) (open + 1 - words), words, close);
	else
		complain("%s is no connection string: %s", setting, words);
	PQfreemem(words);
}

/* The name of a database alone is one, too. */
static bool
check_database(const char *text)
{
	char	   *words = NULL;
	PQconninfoOption *options;
	bool		fine;

	if (strchr(text, '=') == NULL && strncmp(text, "postgres://", 11) != 0 &&
		strncmp(text, "postgresql://", 13) != 0)
		return true;
	options = PQconninfoParse(text, &words);
	fine = options != NULL;
	if (!fine)
		complain_of_conninfo("database", text, words);
	PQconninfoFree(options);
	return fine;
}

/*
 * A standby's connections must all lead to one server: what the shim knows of
 * the one that it has compared would not hold for another one.
 */
static bool
check_server(const char *name, const char *conninfo, int number)
{
	char	   *words = NULL;
	char		setting[32];
	PQconninfoOption *options = PQconninfoParse(conninfo, &words);
	const PQconninfoOption *option = options;
	bool		fine = options != NULL;

	snprintf(setting, sizeof(setting), "%s: number %d", name, number);
	if (!fine)
		complain_of_conninfo(setting, conninfo, words);
	for (; option != NULL && option->keyword != NULL; option++)
	{
		if (strncmp(option->keyword, "host", 4) == 0 &&
			option->val != NULL && strchr(option->val, ',') != NULL)
		{
			complain("%s names several hosts; each server is an item of its "
					 "own", setting);
			fine = false;
		}
	}
	PQconninfoFree(options);
	return fine;
}

static bool
check_servers(const char *name, const char *list, int most)
{
	const char *p = list;
	int			number = 0;
	bool		fine = true;

	for (p += strspn(p, REPLICA_SEPARATORS); *p != '\0';
		 p += strspn(p, REPLICA_SEPARATORS))
	{
		size_t		length = strcspn(p, ";\n");
		char	   *item = strndup(p, length);

		fine = item != NULL && check_server(name, item, ++number) && fine;
		free(item);
		p += length;
	}
	if (number > most)
	{
		complain("%s: there may be %d", name, most);
		fine = false;
	}
	return fine;
}

static bool
check_replicas(const struct config *config)
{
	bool		fine = check_servers("replicas", config->replicas,
									 MAX_REPLICAS);

	fine = check_servers("nodes", config->nodes, MAX_NODES) && fine;
	if (config->nodes[0] != '\0' && config->replicas[0] != '\0')
	{
		complain("nodes and replicas exclude each other");
		fine = false;
	}
	if (strcmp(config->replica_staleness, "refused") != 0 &&
		strcmp(config->replica_staleness, "allowed") != 0)
	{
		complain("replica_staleness: \"%s\" is not refused or allowed",
				 config->replica_staleness);
		fine = false;
	}
	if (config->replicas[0] != '\0' &&
		config->read_your_writes_ms < config->replica_max_lag_ms)
	{
		complain("read_your_writes_ms (%ld) is less than replica_max_lag_ms "
				 "(%ld): a client might not see what it wrote",
				 config->read_your_writes_ms, config->replica_max_lag_ms);
		fine = false;
	}
	if (config->replicas[0] != '\0' && config->statement_timeout_ms > 0 &&
		config->replica_max_lag_ms >= config->statement_timeout_ms)
	{
		complain("replica_max_lag_ms (%ld) must be less than "
				 "statement_timeout_ms (%ld)", config->replica_max_lag_ms,
				 config->statement_timeout_ms);
		fine = false;
	}
	return fine;
}

/*
 * An address without user, query and fragment, as it is shown, and headers of
 * one line.  Nothing of the headers is told.
 */
static bool
check_otlp(const struct config *config)
{
	const char *url = config->otlp_endpoint;
	const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 :
		strncmp(url, "https://", 8) == 0 ? url + 8 : "";
	const char *p = config->otlp_headers;
	bool		fine = true;

	if (url[0] != '\0' && (strcspn(host, "/") == 0 ||
						   strpbrk(host, "@?#\\ \t\r\n") != NULL))
	{
		complain("otlp_endpoint: \"%s\" is not http://host:port/path or "
				 "https://host:port/path", url);
		fine = false;
	}
	for (p += strspn(p, "\n"); *p != '\0'; p += strspn(p, "\n"))
	{
		size_t		length = strcspn(p, "\n");
		size_t		name = strspn(p, "abcdefghijklmnopqrstuvwxyz-_"
								  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

		if (name == 0 || p[name] != ':' || memchr(p, '\r', length) != NULL)
		{
			complain("otlp_headers: a line is not \"Name: value\"");
			return false;
		}
		p += length;
	}
	return fine;
}

static bool
check_contradictions(const struct config *config)
{
	bool		fine = listen_check("listen", config->listen);

	if (config->admin_listen[0] != '\0')
		fine = listen_check("admin_listen", config->admin_listen) && fine;
	fine = cors_check(config->cors_origins) && fine;
	fine = check_otlp(config) && fine;

	if (strcmp(config->front, "loop") != 0 &&
		strcmp(config->front, "civetweb") != 0)
	{
		complain("front: \"%s\" is not loop or civetweb", config->front);
		fine = false;
	}
	if (strcmp(config->keep_alive, "auto") != 0 &&
		strcmp(config->keep_alive, "yes") != 0 &&
		strcmp(config->keep_alive, "no") != 0)
	{
		complain("keep_alive: \"%s\" is not yes, no or auto",
				 config->keep_alive);
		fine = false;
	}
	fine = check_database(config->database) && fine;
	fine = check_replicas(config) && fine;
	if (lacks_threads(config))
	{
		complain("pool_size (%ld) is more than threads (%ld) can use",
				 config->pool_size, config->threads);
		fine = false;
	}
	if (config->login_pool_share > config->pool_size)
	{
		complain("login_pool_share (%ld) is more than pool_size (%ld)",
				 config->login_pool_share, config->pool_size);
		fine = false;
	}
	if (config->max_body_auth > config->max_body)
	{
		complain("max_body_auth (%ld) is more than max_body (%ld)",
				 config->max_body_auth, config->max_body);
		fine = false;
	}
	return fine;
}

bool
config_check(struct config *config)
{
	if (!parse_networks(config) || !parse_mode(config) ||
		!read_security_txt(config))
		return false;
	apply_computed(config);
	return check_contradictions(config);
}
