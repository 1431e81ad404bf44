#include <openssl/ssl.h>

#include "database/unread.h"

/* Nothing tells what Kerberos holds, so that is looked at now and then. */
#define GSS_LOOK_MS 20

int
unread_wait(PGconn *connection, int wait_ms)
{
	if (PQsslInUse(connection))
		return SSL_pending(PQsslStruct(connection, "OpenSSL")) > 0 ?
			0 : wait_ms;
	if (PQgssEncInUse(connection) && (wait_ms < 0 || wait_ms > GSS_LOOK_MS))
		return GSS_LOOK_MS;
	return wait_ms;
}
