/*
 * Does a text have what a regular expression describes?
 *
 * The tree becomes a program, and the program is run from all places at once:
 * a state is a step, a place in the text and what groups have captured, as far
 * as back references ask for it, and no state is looked at twice.  So it ends,
 * and without back references it takes no more than steps times places.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "utils/fmgrprotos.h"

#include "base/compat.h"
#include "base/grow.h"
#include "standin/regex_lex.h"
#include "standin/regex_match.h"

/* States that are looked at, those of looks ahead and behind included */
#define MOST_STATES (4 * 1024 * 1024)

typedef enum StepKind
{
	STEP_SET,					/* a character, and on */
	STEP_PLACE,
	STEP_LOOK,					/* its program follows; "to" is behind it */
	STEP_OPEN,					/* a group begins */
	STEP_CLOSE,
	STEP_FORGET,				/* what a group has captured */
	STEP_HAVE,					/* a group has captured something */
	STEP_BACK,
	STEP_SPLIT,					/* here and there */
	STEP_GO,
	STEP_DONE
} StepKind;

typedef struct Step
{
	StepKind	kind;
	int			value;
	int			to;
	const RegexSet *set;
} Step;

typedef struct Matcher
{
	const Regex *regex;
	const pg_wchar *text;
	int			length;
	int			nsteps;
	int			room;
	Step	   *steps;
	int			width;			/* numbers of a state */
	int			looked_at;		/* states */
} Matcher;

/* States that were seen, those to be looked at last at the end. */
typedef struct States
{
	int			count;
	int			todo;
	int			room;
	int			nslots;			/* a power of two */
	int		   *numbers;
	int		   *slots;			/* 1 + which, or 0 */
	int		   *stack;
	int			stack_room;
} States;

static bool is_there(Matcher *m, int step, int first, int last, int end);

/* -------- the program -------- */

static int
add_step(Matcher *m, StepKind kind, int value)
{
	Step	   *step = EA_GROW_ARRAY(m->steps, m->nsteps, m->room);

	memset(step, 0, sizeof(*step));
	step->kind = kind;
	step->value = value;
	return m->nsteps - 1;
}

static void add_node(Matcher *m, const RegexNode *node);

static void
add_inner(Matcher *m, const RegexNode *node)
{
	for (const RegexNode *at = node->first; at != NULL; at = at->next)
		add_node(m, at);
}

static void
add_choice(Matcher *m, const RegexNode *node)
{
	int			ends = -1;

	for (const RegexNode *at = node->first; at != NULL; at = at->next)
	{
		int			split;

		if (at->next == NULL)
		{
			add_node(m, at);
			break;
		}
		split = add_step(m, STEP_SPLIT, 0);
		add_node(m, at);
		ends = add_step(m, STEP_GO, ends);
		m->steps[split].to = m->nsteps;
	}
	while (ends >= 0)
	{
		m->steps[ends].to = m->nsteps;
		ends = m->steps[ends].value;
	}
}

/* Once; what was captured the last time counts no longer. */
static void
add_turn(Matcher *m, const RegexNode *node)
{
	if (m->regex->looks_back)
	{
		for (int i = 1; i <= node->groups; i++)
			add_step(m, STEP_FORGET, node->value + i);
	}
	add_node(m, node->first);
}

static void
add_repeat(Matcher *m, const RegexNode *node)
{
	/* what was not captured does not even come no times */
	if (node->first->kind == REGEX_NODE_BACK && node->most != 0)
		add_step(m, STEP_HAVE, node->first->value);
	for (int i = 0; i < node->least; i++)
		add_turn(m, node);
	if (node->most == REGEX_ENDLESS)
	{
		int			split = add_step(m, STEP_SPLIT, 0);
		int			back;

		add_turn(m, node);
		back = add_step(m, STEP_GO, 0);
		m->steps[back].to = split;
		m->steps[split].to = m->nsteps;
		return;
	}
	for (int i = node->least; i < node->most; i++)
	{
		int			split = add_step(m, STEP_SPLIT, 0);

		add_turn(m, node);
		m->steps[split].to = m->nsteps;
	}
}

static void
add_node(Matcher *m, const RegexNode *node)
{
	int			step;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (node->kind)
	{
		case REGEX_NODE_NOTHING:
			break;
		case REGEX_NODE_SET:
			step = add_step(m, STEP_SET, 0);
			m->steps[step].set = node->set;
			break;
		case REGEX_NODE_PLACE:
			add_step(m, STEP_PLACE, node->value);
			break;
		case REGEX_NODE_LOOK:
			step = add_step(m, STEP_LOOK, node->value);
			add_inner(m, node);
			add_step(m, STEP_DONE, 0);
			m->steps[step].to = m->nsteps;
			break;
		case REGEX_NODE_GROUP:
			if (m->regex->looks_back)
				add_step(m, STEP_OPEN, node->value);
			add_inner(m, node);
			if (m->regex->looks_back)
				add_step(m, STEP_CLOSE, node->value);
			break;
		case REGEX_NODE_BACK:
			add_step(m, STEP_BACK, node->value);
			break;
		case REGEX_NODE_ROW:
			add_inner(m, node);
			break;
		case REGEX_NODE_CHOICE:
			add_choice(m, node);
			break;
		case REGEX_NODE_REPEAT:
			add_repeat(m, node);
			break;
	}
}

/* -------- states -------- */

/* A state: step, place, then for each group where it begins and ends */
#define STEP_OF(state) ((state)[0])
#define PLACE_OF(state) ((state)[1])
#define BEGIN_OF(state, group) ((state)[2 * (group)])
#define END_OF(state, group) ((state)[2 * (group) + 1])

static uint32
hash_state(const Matcher *m, const int *state)
{
	return hash_bytes((const unsigned char *) state, m->width * sizeof(int));
}

static void
put_in_slot(const Matcher *m, States *states, int which)
{
	uint32		slot = hash_state(m, states->numbers + which * m->width);

	while (states->slots[slot &= states->nslots - 1] != 0)
		slot++;
	states->slots[slot] = which + 1;
}

static void
grow_slots(const Matcher *m, States *states)
{
	if (states->slots != NULL)
		pfree(states->slots);
	states->nslots = Max(64, 4 * states->nslots);
	states->slots = palloc0(states->nslots * sizeof(int));
	for (int i = 0; i < states->count; i++)
		put_in_slot(m, states, i);
}

static bool
is_known(const Matcher *m, const States *states, const int *state)
{
	uint32		slot = hash_state(m, state);

	for (;; slot++)
	{
		int			which = states->slots[slot &= states->nslots - 1];

		if (which == 0)
			return false;
		if (memcmp(states->numbers + (which - 1) * m->width, state,
				   m->width * sizeof(int)) == 0)
			return true;
	}
}

/* Notes a state to be looked at, if it is new. */
static void
add_state(const Matcher *m, States *states, const int *state)
{
	if (states->nslots <= 2 * states->count)
		grow_slots(m, states);
	if (is_known(m, states, state))
		return;
	if (states->count == states->room)
	{
		Size		size;

		states->room = Max(32, 2 * states->room);
		size = (Size) states->room * m->width * sizeof(int);
		states->numbers = states->numbers == NULL ? palloc(size) :
			repalloc(states->numbers, size);
	}
	memcpy(states->numbers + states->count * m->width, state,
		   m->width * sizeof(int));
	put_in_slot(m, states, states->count);
	*EA_GROW_ARRAY(states->stack, states->todo, states->stack_room) =
		states->count++;
}

/* -------- conditions -------- */

static bool
is_word(const Matcher *m, int at)
{
	return at >= 0 && at < m->length &&
		standin_regex_is(m->text[at], REGEX_WORD);
}

static bool
is_place(const Matcher *m, int token, int at)
{
	bool		lines = (m->regex->flags & REG_NLANCH) != 0;
	bool		before = is_word(m, at - 1);
	bool		after = is_word(m, at);

	switch (token)
	{
		case '^':
			return at == 0 || (lines && m->text[at - 1] == '\n');
		case '$':
			return at == m->length || (lines && m->text[at] == '\n');
		case '<':
			return !before && after;
		case '>':
			return before && !after;
		case REGEX_WORD_EDGE:
			return before != after;
		case REGEX_NO_WORD_EDGE:
			return before == after;
		case REGEX_TEXT_BEGIN:
			return at == 0;
		default:
			return at == m->length;
	}
}

static bool
is_seen(Matcher *m, int step, int at)
{
	const Step *look = &m->steps[step];
	bool		seen = look->value & REGEX_LOOK_BEHIND ?
		is_there(m, step + 1, 0, at, at) :
		is_there(m, step + 1, at, at, -1);

	return seen != ((look->value & REGEX_LOOK_NOT) != 0);
}

/* Does the text go on with what a group has captured?  *at is behind it. */
static bool
comes_again(const Matcher *m, const int *state, int group, int *at)
{
	int			begin = BEGIN_OF(state, group);
	int			count = END_OF(state, group) - begin;

	if (END_OF(state, group) < 0 || count > m->length - *at)
		return false;
	for (int i = 0; i < count; i++)
	{
		pg_wchar	one = m->text[begin + i];
		pg_wchar	other = m->text[*at + i];

		if (one != other && (!(m->regex->flags & REG_ICASE) ||
							 standin_regex_fold(one) !=
							 standin_regex_fold(other)))
			return false;
	}
	*at += count;
	return true;
}

/* -------- running -------- */

/* One step from a state, which is changed; false: it does not go on. */
static bool
go_on(Matcher *m, States *states, int *state)
{
	const Step *step = &m->steps[STEP_OF(state)];
	int			at = PLACE_OF(state);

	STEP_OF(state)++;
	switch (step->kind)
	{
		case STEP_SET:
			PLACE_OF(state)++;
			return at < m->length &&
				standin_regex_contains(step->set, m->text[at]);
		case STEP_PLACE:
			return is_place(m, step->value, at);
		case STEP_LOOK:
			STEP_OF(state) = step->to;
			return is_seen(m, step - m->steps, at);
		case STEP_OPEN:
			BEGIN_OF(state, step->value) = at;
			END_OF(state, step->value) = -1;
			return true;
		case STEP_CLOSE:
			END_OF(state, step->value) = at;
			return true;
		case STEP_FORGET:
			BEGIN_OF(state, step->value) = END_OF(state, step->value) = -1;
			return true;
		case STEP_HAVE:
			return END_OF(state, step->value) >= 0;
		case STEP_BACK:
			return comes_again(m, state, step->value, &PLACE_OF(state));
		case STEP_SPLIT:
			add_state(m, states, state);
			STEP_OF(state) = step->to;
			return true;
		case STEP_GO:
			STEP_OF(state) = step->to;
			return true;
		default:
			return false;
	}
}

/*
 * From a step on, at any place from first to last; to a given end, or to any
 * if that is -1.
 */
static bool
is_there(Matcher *m, int step, int first, int last, int end)
{
	States		states = {0};
	int		   *state = palloc(m->width * sizeof(int));
	bool		found = false;

	check_stack_depth();
	for (int at = last; at >= first; at--)
	{
		memset(state, -1, m->width * sizeof(int));
		STEP_OF(state) = step;
		PLACE_OF(state) = at;
		add_state(m, &states, state);
	}
	while (states.todo > 0 && !found && m->looked_at <= MOST_STATES)
	{
		CHECK_FOR_INTERRUPTS();
		m->looked_at++;
		memcpy(state, states.numbers +
			   states.stack[--states.todo] * m->width,
			   m->width * sizeof(int));
		if (m->steps[STEP_OF(state)].kind == STEP_DONE)
			found = end < 0 || PLACE_OF(state) == end;
		else if (go_on(m, &states, state))
			add_state(m, &states, state);
	}
	if (states.count > 0)
	{
		pfree(states.numbers);
		pfree(states.slots);
		pfree(states.stack);
	}
	pfree(state);
	return found;
}

bool
standin_regex_matches(const Regex *regex, const pg_wchar *text, int length)
{
	Matcher		m = {regex, text, length};
	bool		found;

	m.width = 2 + (regex->looks_back ? 2 * regex->groups : 0);
	add_node(&m, regex->tree);
	add_step(&m, STEP_DONE, 0);
	found = is_there(&m, 0, 0, length, -1);
	pfree(m.steps);
	return found || m.looked_at > MOST_STATES;
}
