#include "base/address.h"
#include "base/proxies.h"

bool
config_trusts(const struct config *config, const char *address)
{
	struct address parsed;
	size_t		i;

	if (config->network_count == 0 || !address_parse(address, &parsed))
		return false;
	for (i = 0; i < config->network_count; i++)
	{
		const struct network *network = &config->networks[i];

		if (address_within(&parsed, &network->address, network->bits))
			return true;
	}
	return false;
}
