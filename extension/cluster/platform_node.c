#include "postgres.h"

#include "cluster/platform_node.h"
#include "engine/exec.h"
#include "trust/pin.h"

static void
read_answer(void *arg, TupleTableSlot *slot)
{
	*(int *) arg = DatumGetInt32(slot->tts_values[0]);
}

/* A statement that only reads would be in no transaction there. */
int
ea_platform_node_ask(const char *sql, EaParams params)
{
	int			answer = 0;
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_pin_set("citus.select_opens_transaction_block", "on");
	ea_exec_each(EA_EXEC_WRITE, sql, params, EA_READER(read_answer, INT4OID),
				 &answer);
	ea_pin_end(&pin);
	return answer;
}
