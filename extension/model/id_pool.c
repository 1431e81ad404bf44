#include "postgres.h"

#include "common/hashfn.h"

#include "model/id_pool.h"
#include "request/limits.h"

typedef struct PoolKey
{
	const char *text;
	int			len;
} PoolKey;

typedef struct PoolEntry
{
	PoolKey		key;
	void	  **kept;			/* in its own place, as entries move */
	char		status;
} PoolEntry;

#define SH_PREFIX pool
#define SH_ELEMENT_TYPE PoolEntry
#define SH_KEY_TYPE PoolKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) \
	hash_bytes((const unsigned char *) (key).text, (key).len)
#define SH_EQUAL(tb, a, b) \
	((a).len == (b).len && memcmp((a).text, (b).text, (a).len) == 0)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "lib/simplehash.h"
#pragma GCC diagnostic pop

struct EaIdPool
{
	pool_hash  *texts;
};

void **
ea_id_pool_find(EaRequest *req, const char *text, int len, const char **copy)
{
	PoolKey		asked = {text, len};
	PoolEntry  *entry;
	MemoryContext old;
	char	   *own;
	bool		found;

	old = MemoryContextSwitchTo(req->mcxt);
	if (req->ids == NULL)
	{
		req->ids = palloc(sizeof(struct EaIdPool));
		req->ids->texts = pool_create(req->mcxt, 64, NULL);
	}
	entry = pool_lookup(req->ids->texts, asked);
	if (entry == NULL)
	{
		ea_limits_keep(req, len + sizeof(PoolEntry) + sizeof(void *), NULL);
		asked.text = own = palloc(len + 1);
		memcpy(own, text, len);
		own[len] = '\0';
		entry = pool_insert(req->ids->texts, asked, &found);
		entry->kept = palloc0(sizeof(void *));
	}
	MemoryContextSwitchTo(old);
	*copy = entry->key.text;
	return entry->kept;
}
