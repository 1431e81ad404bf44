#include "postgres.h"

#include "base/jsonfmt.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "request/errors.h"

void
ea_manifest_fault(EaManifest *m, const char *label, const char *pointer,
				  const char *message, const char *hint)
{
	StringInfo	buf = &m->faults;

	m->nfaults++;
	if (buf->len > 0)
		appendStringInfoString(buf, ", ");
	ea_jsonfmt_put(buf, "{'document':%q,'pointer':%q,'message':%q,'hint':%q}",
				   label, pointer, message, hint);
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

const char *
ea_manifest_guess_map(const char *name, EaNameMap *map,
					  const char *otherwise)
{
	int			n;
	const char **names = ea_names_map_list(map, &n);

	return ea_manifest_guess(name, names, n, otherwise);
}
