/*
 * The versions of libraries that the shim is written for.
 *
 * scripts/build/check-needs prints these lines before anything is built.
 * libyaml does not tell its version to the preprocessor, and any will do.
 */
#ifndef NEEDS_H
#define NEEDS_H

#include <civetweb.h>
#include <curl/curl.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <yaml.h>
#include <zlib.h>

/*
 * The first that has been tried, with mg_disable_connection_keep_alive()
 */
#if CIVETWEB_VERSION_MAJOR < 1 || \
	(CIVETWEB_VERSION_MAJOR == 1 && CIVETWEB_VERSION_MINOR < 15)
#error entityapi needs civetweb 1.15 or newer
#endif

/* JSON_DECODE_INT_AS_REAL */
#if JANSSON_VERSION_HEX < 0x020500
#error entityapi needs jansson 2.5 or newer
#endif

/* CURLINFO_RETRY_AFTER */
#if LIBCURL_VERSION_NUM < 0x074200
#error entityapi needs libcurl 7.66 or newer
#endif

/* tcp_user_timeout is of 12; this is the first that tells what it has. */
#ifndef LIBPQ_HAS_PIPELINING
#error entityapi needs libpq 14 or newer
#endif

/* deflateInit2() writes gzip. */
#if ZLIB_VERNUM < 0x1204
#error entityapi needs zlib 1.2.0.4 or newer
#endif

#endif							/* NEEDS_H */
