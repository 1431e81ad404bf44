#include "base/refusal.h"

#define DEFINE_REFUSAL(name, status, code, title, detail) \
	const struct refusal refusal_##name = {#name, status, code, title, detail};
REFUSALS(DEFINE_REFUSAL)

bool
refusal_passes(const struct refusal *refusal)
{
	return (refusal->status == 503 || refusal->status == 429) &&
		refusal != &refusal_outcome_unknown;
}
