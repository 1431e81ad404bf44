/*
 * The faults of manifests: collected one by one, thrown together.
 */
#include "postgres.h"

#include "base/format.h"
#include "base/jsonfmt.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "request/errors.h"

void
ea_manifest_fault(EaManifest *m, const char *label, const char *pointer,
				  const char *hint, const char *fmt,...)
{
	StringInfo	buf = &m->faults;
	char	   *message;
	va_list		args;

	va_start(args, fmt);
	message = ea_format(fmt, args);
	va_end(args);
	m->nfaults++;
	if (buf->len > 0)
		appendStringInfoString(buf, ", ");
	ea_jsonfmt_put(buf, "{'document':%q,'pointer':%q,'message':%q,'hint':%q}",
				   label, pointer, message, hint);
	pfree(message);
}

void
ea_manifest_throw(EaManifest *m)
{
	if (m->nfaults == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_EA_MANIFEST),
			 errmsg_plural("manifests have %d fault",
						   "manifests have %d faults",
						   m->nfaults, m->nfaults),
			 errdetail_internal("[%s]", m->faults.data)));
}

const char *
ea_manifest_guess(const char *name, const char *const *candidates, int n,
				  const char *otherwise)
{
	const char *nearest = ea_names_nearest(name, candidates, n);

	return nearest ? psprintf("did you mean \"%s\"?", nearest) : otherwise;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

const char *
ea_manifest_guess_map(const char *name, EaNameMap *map,
					  const char *otherwise)
{
	long		size = hash_get_num_entries(map);
	const char **candidates = palloc(sizeof(char *) * (size + 1));
	HASH_SEQ_STATUS scan;
	const char **entry;
	int			n = 0;

	/* the name is the key, and so the first member of an entry */
	hash_seq_init(&scan, map);
	while ((entry = hash_seq_search(&scan)) != NULL)
		candidates[n++] = *entry;
	/* of names that are equally near it is not the hash that chooses */
	qsort(candidates, n, sizeof(char *), compare_names);
	return ea_manifest_guess(name, candidates, n, otherwise);
}
