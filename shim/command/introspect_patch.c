/*
 * What is the same at both ends is left out first; of the rest the longest
 * common sequence of lines stays, unless it is so much that all of it counts
 * as changed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_patch.h"

#define CONTEXT 3

/* Pairs of lines that are compared */
#define MOST_PAIRS (4 * 1024 * 1024)

struct line
{
	const char *text;
	size_t		length;			/* with its newline, if it has one */
};

struct lines
{
	struct line *lines;
	size_t		count;
};

/* A line of the difference: ' ', '-' or '+' */
struct step
{
	char		sign;
	const struct line *line;
};

struct script
{
	struct step *steps;
	size_t		count;
};

static bool
split(const struct patch_side *side, struct lines *lines)
{
	size_t		count = 1;
	size_t		at = 0;

	for (size_t i = 0; i < side->length; i++)
		count += side->text[i] == '\n';
	lines->count = 0;
	lines->lines = calloc(count, sizeof(struct line));
	while (lines->lines != NULL && at < side->length)
	{
		const char *start = side->text + at;
		const char *end = memchr(start, '\n', side->length - at);
		struct line *line = &lines->lines[lines->count++];

		line->text = start;
		line->length = end ? (size_t) (end - start) + 1 : side->length - at;
		at += line->length;
	}
	return lines->lines != NULL;
}

static bool
is_same(const struct line *one, const struct line *other)
{
	return one->length == other->length &&
		memcmp(one->text, other->text, one->length) == 0;
}

static void
add_step(struct script *script, char sign, const struct line *line)
{
	script->steps[script->count].sign = sign;
	script->steps[script->count++].line = line;
}

/*
 * lengths[i * (m + 1) + k]: of the longest common sequence of the lines from
 * i and from k on.
 */
static uint32_t *
measure(const struct line *one, size_t n, const struct line *other, size_t m)
{
	uint32_t   *lengths;

	if (n == 0 || m == 0 || n > MOST_PAIRS / m)
		return NULL;
	lengths = calloc((n + 1) * (m + 1), sizeof(uint32_t));
	for (size_t i = n; lengths != NULL && i-- > 0;)
	{
		for (size_t k = m; k-- > 0;)
		{
			uint32_t	down = lengths[(i + 1) * (m + 1) + k];
			uint32_t	right = lengths[i * (m + 1) + k + 1];

			lengths[i * (m + 1) + k] = is_same(&one[i], &other[k]) ?
				lengths[(i + 1) * (m + 1) + k + 1] + 1 :
				down > right ? down : right;
		}
	}
	return lengths;
}

/* The steps from one run of lines to another. */
static void
compare_runs(struct script *script, const struct line *one, size_t n,
			 const struct line *other, size_t m)
{
	uint32_t   *lengths = measure(one, n, other, m);
	size_t		i = 0;
	size_t		k = 0;

	while (lengths != NULL && i < n && k < m)
	{
		if (is_same(&one[i], &other[k]))
		{
			add_step(script, ' ', &one[i++]);
			k++;
		}
		else if (lengths[(i + 1) * (m + 1) + k] >=
				 lengths[i * (m + 1) + k + 1])
			add_step(script, '-', &one[i++]);
		else
			add_step(script, '+', &other[k++]);
	}
	while (i < n)
		add_step(script, '-', &one[i++]);
	while (k < m)
		add_step(script, '+', &other[k++]);
	free(lengths);
}

static void
compare_lines(struct script *script, const struct lines *before,
			  const struct lines *after)
{
	size_t		first = 0;
	size_t		last = 0;

	while (first < before->count && first < after->count &&
		   is_same(&before->lines[first], &after->lines[first]))
		add_step(script, ' ', &before->lines[first++]);
	while (last < before->count - first && last < after->count - first &&
		   is_same(&before->lines[before->count - 1 - last],
				   &after->lines[after->count - 1 - last]))
		last++;
	compare_runs(script, before->lines + first, before->count - first - last,
				 after->lines + first, after->count - first - last);
	for (size_t i = before->count - last; i < before->count; i++)
		add_step(script, ' ', &before->lines[i]);
}

/* -------- hunks -------- */

static void
write_line(struct buffer *out, const struct step *step)
{
	buffer_char(out, step->sign);
	buffer_append(out, step->line->text, step->line->length);
	if (step->line->text[step->line->length - 1] != '\n')
		buffer_string(out, "\n\\ No newline at end of file\n");
}

/* Steps from the first to before the last; lines before them are counted. */
static void
write_hunk(struct buffer *out, const struct script *script, size_t first,
		   size_t last, const size_t before[2])
{
	size_t		counts[2] = {0, 0};

	for (size_t i = first; i < last; i++)
	{
		counts[0] += script->steps[i].sign != '+';
		counts[1] += script->steps[i].sign != '-';
	}
	buffer_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n",
				  before[0] + (counts[0] > 0), counts[0],
				  before[1] + (counts[1] > 0), counts[1]);
	for (size_t i = first; i < last; i++)
		write_line(out, &script->steps[i]);
}

/* The end of a hunk that begins with a change at this step. */
static size_t
end_of_hunk(const struct script *script, size_t at)
{
	size_t		last = at;

	for (; at < script->count && at <= last + 2 * CONTEXT; at++)
	{
		if (script->steps[at].sign != ' ')
			last = at;
	}
	last += 1 + CONTEXT;
	return last < script->count ? last : script->count;
}

static void
write_hunks(struct buffer *out, const struct script *script)
{
	size_t		before[2] = {0, 0};
	size_t		done = 0;

	for (size_t at = 0; at < script->count; at++)
	{
		size_t		first;
		size_t		last;

		if (script->steps[at].sign == ' ')
			continue;
		first = at - done > CONTEXT ? at - CONTEXT : done;
		last = end_of_hunk(script, at);
		before[0] += first - done;
		before[1] += first - done;
		write_hunk(out, script, first, last, before);
		for (; first < last; first++)
		{
			before[0] += script->steps[first].sign != '+';
			before[1] += script->steps[first].sign != '-';
		}
		done = last;
		at = last - 1;
	}
}

static bool
is_changed(const struct script *script)
{
	for (size_t i = 0; i < script->count; i++)
	{
		if (script->steps[i].sign != ' ')
			return true;
	}
	return false;
}

void
patch_write(struct buffer *out, const struct patch_side *before,
			const struct patch_side *after)
{
	struct lines one = {0};
	struct lines other = {0};
	struct script script = {0};

	if (split(before, &one) && split(after, &other))
		script.steps = calloc(one.count + other.count + 1,
							  sizeof(struct step));
	if (script.steps == NULL)
		out->failed = true;
	else
	{
		compare_lines(&script, &one, &other);
		if (is_changed(&script))
			buffer_printf(out, "--- %s\n+++ %s\n",
						  before->text ? before->name : "/dev/null",
						  after->text ? after->name : "/dev/null");
		write_hunks(out, &script);
	}
	free(one.lines);
	free(other.lines);
	free(script.steps);
}
