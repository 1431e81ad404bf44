/*
 * The errors that the shim itself answers with.
 */
#include "base/refusal.h"

#define DEFINE_REFUSAL(name, status, code, title, detail) \
	const struct refusal refusal_##name = {#name, status, code, title, detail};
REFUSALS(DEFINE_REFUSAL)
