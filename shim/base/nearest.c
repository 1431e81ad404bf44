#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

void
nearest_begin(struct nearest *nearest, const char *word, size_t length)
{
	nearest->word = word;
	nearest->length = length;
	nearest->limit = length < NEAREST_SIZE ? (length + 1) / 3 + 1 : 0;
	nearest->best[0] = '\0';
}

/* Letters to be changed, added or taken away (Levenshtein). */
static size_t
distance(const char *one, size_t n, const char *other, size_t m)
{
	size_t		row[NEAREST_SIZE];
	size_t		i;
	size_t		k;

	for (k = 0; k <= m; k++)
		row[k] = k;
	for (i = 1; i <= n; i++)
	{
		size_t		diagonal = row[0];

		row[0] = i;
		for (k = 1; k <= m; k++)
		{
			size_t		least = diagonal + (one[i - 1] != other[k - 1]);

			diagonal = row[k];
			if (row[k] + 1 < least)
				least = row[k] + 1;
			if (row[k - 1] + 1 < least)
				least = row[k - 1] + 1;
			row[k] = least;
		}
	}
	return row[m];
}

void
nearest_offer(struct nearest *nearest, const char *candidate)
{
	size_t		length = strlen(candidate);
	size_t		far;

	if (nearest->limit == 0 || length >= NEAREST_SIZE)
		return;
	far = distance(nearest->word, nearest->length, candidate, length);
	if (far < nearest->limit)
	{
		nearest->limit = far;
		memcpy(nearest->best, candidate, length + 1);
	}
}
