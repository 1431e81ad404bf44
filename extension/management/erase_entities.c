/*
 * Links go first, then rows that others do not refer to.  Where references
 * run in a circle, those that may be null become null before; where they
 * must not, the rows that need one another go together.
 *
 * Rows of an application are its own: they stay, and a tenant that is made
 * anew by its id has them again.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "base/grow.h"
#include "base/names.h"
#include "engine/exec.h"
#include "management/erase_entities.h"
#include "management/erase_tenants.h"
#include "model/sqlbuf.h"
#include "write/links_deferred.h"
#include "write/written.h"

/* -------- which entity refers to which -------- */

typedef struct Vertex
{
	EaEntity   *entity;
	int			index;			/* order of the visit, 0: not visited */
	int			low;			/* lowest index that can be reached */
	bool		waiting;		/* visited, its circle is not complete */
	int			circle;			/* number of its circle */
} Vertex;

typedef struct Graph
{
	int			n;
	Vertex	   *vertices;
	EaNameMap  *by_name;		/* the same, by the entity's name */
	const int  *without;		/* circles whose loose references do not
								 * count */
	int			visited;
	int			ncircles;
	List	   *stack;			/* of Vertex, waiting */
} Graph;

static void
read_name(void *arg, TupleTableSlot *slot)
{
	List	  **names = arg;

	*names = lappend(*names, TextDatumGetCString(slot->tts_values[0]));
}

static void
load_graph(EaRequest *req, Graph *graph)
{
	List	   *names = NIL;
	ListCell   *cell;

	memset(graph, 0, sizeof(Graph));
	ea_exec_one(EA_EXEC_READ,
				"SELECT name FROM entityapi.entity ORDER BY name",
				EA_NO_PARAMS, EA_READER(read_name, TEXTOID), &names);
	graph->vertices = palloc0(Max(list_length(names), 1) * sizeof(Vertex));
	graph->by_name = ea_names_map_create(Max(list_length(names), 1));
	foreach(cell, names)
	{
		EaEntity   *entity = ea_catalog_entity(req->catalog, lfirst(cell));

		CHECK_FOR_INTERRUPTS();
		if (entity == NULL || !entity->tenant_scoped ||
			entity->of_application)
			continue;
		ea_names_map_put(graph->by_name, entity->name,
						 &graph->vertices[graph->n]);
		graph->vertices[graph->n++].entity = entity;
	}
}

/* NULL for one that is common to all tenants, or the application's. */
static Vertex *
find_vertex(Graph *graph, const EaEntity *entity)
{
	return ea_names_map_get(graph->by_name, entity->name);
}

static bool
has_column(const EaField *field)
{
	return field->kind == EA_TO_ONE || field->kind == EA_ONE_OF;
}

/* A reference within a circle that can be null. */
static bool
is_loose(const int *circles, Graph *graph, const Vertex *from,
		 const Vertex *to, const EaField *field)
{
	return !field->required &&
		circles[from - graph->vertices] == circles[to - graph->vertices];
}

/*
 * Tarjan's strongly connected components: each circle gets its number after
 * those that can be reached from it.
 */
static void
visit_vertex(Graph *graph, Vertex *vertex)
{
	EaEntity   *entity = vertex->entity;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	vertex->index = vertex->low = ++graph->visited;
	vertex->waiting = true;
	graph->stack = lappend(graph->stack, vertex);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; has_column(field) && m < field->nmembers; m++)
		{
			Vertex	   *to = find_vertex(graph, ea_catalog_target(field, m));

			if (to == NULL || (graph->without != NULL &&
							   is_loose(graph->without, graph, vertex, to,
										field)))
				continue;
			if (to->index == 0)
				visit_vertex(graph, to);
			if (to->waiting)
				vertex->low = Min(vertex->low, to->low);
		}
	}
	while (vertex->low == vertex->index && vertex->waiting)
	{
		Vertex	   *last = llast(graph->stack);

		graph->stack = list_delete_last(graph->stack);
		last->waiting = false;
		last->circle = graph->ncircles;
	}
	if (vertex->low == vertex->index)
		graph->ncircles++;
}

static void
find_circles(Graph *graph, const int *without)
{
	graph->without = without;
	graph->visited = graph->ncircles = 0;
	for (int i = 0; i < graph->n; i++)
		graph->vertices[i].index = 0;
	for (int i = 0; i < graph->n; i++)
	{
		if (graph->vertices[i].index == 0)
			visit_vertex(graph, &graph->vertices[i]);
	}
}

/* -------- the plan -------- */

static EaErase *
add_erase(List **plan, EaEraseKind kind, EaEntity *entity)
{
	EaErase    *erase = palloc0(sizeof(EaErase));

	erase->kind = kind;
	if (entity != NULL)
		erase->entities = list_make1(entity);
	*plan = lappend(*plan, erase);
	return erase;
}

static void
plan_links(List **plan, EaEntity *entity)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		/* an application's links stay with its rows */
		if (field->kind == EA_MANY_TO_MANY && field->mapped_by == NULL &&
			!field->through)
			add_erase(plan, EA_ERASE_LINKS, entity)->field = field;
	}
}

/* The references of an entity that are part of a circle and can be null. */
static void
plan_loosening(List **plan, Graph *graph, const int *circles,
			   const Vertex *vertex)
{
	EaEntity   *entity = vertex->entity;
	StringInfoData set;
	StringInfoData where;
	EaErase    *erase;

	initStringInfo(&set);
	initStringInfo(&where);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; has_column(field) && m < field->nmembers; m++)
		{
			Vertex	   *to = find_vertex(graph, ea_catalog_target(field, m));

			if (to == NULL || !is_loose(circles, graph, vertex, to, field))
				continue;
			appendStringInfo(&set, "%s%s = NULL", set.len > 0 ? ", " : "",
							 field->members[m].column);
			appendStringInfo(&where, "%st0.%s IS NOT NULL",
							 where.len > 0 ? " OR " : "",
							 field->members[m].column);
		}
	}
	if (set.len == 0)
		return;
	erase = add_erase(plan, EA_ERASE_LOOSEN, entity);
	erase->set = set.data;
	erase->where = where.data;
}

static bool
refers_to_itself(EaEntity *entity)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; has_column(field) && field->required &&
			 m < field->nmembers; m++)
		{
			if (ea_catalog_target(field, m) == entity)
				return true;
		}
	}
	return false;
}

/* The entities of each circle: one by itself, or a knot. */
static void
plan_rows(List **plan, Graph *graph)
{
	List	  **circles = palloc0(Max(graph->ncircles, 1) * sizeof(List *));

	for (int i = 0; i < graph->n; i++)
	{
		Vertex	   *vertex = &graph->vertices[i];

		circles[vertex->circle] = lappend(circles[vertex->circle],
										  vertex->entity);
	}
	for (int circle = graph->ncircles - 1; circle >= 0; circle--)
	{
		EaErase    *erase = add_erase(plan, EA_ERASE_ROWS, NULL);

		erase->entities = circles[circle];
		if (list_length(erase->entities) > 1 ||
			refers_to_itself(linitial(erase->entities)))
			erase->kind = EA_ERASE_KNOT;
	}
}

List *
ea_erase_plan(EaRequest *req)
{
	List	   *plan = NIL;
	Graph		graph;
	int		   *circles;

	load_graph(req, &graph);
	find_circles(&graph, NULL);
	circles = palloc(Max(graph.n, 1) * sizeof(int));
	for (int i = 0; i < graph.n; i++)
		circles[i] = graph.vertices[i].circle;

	for (int i = 0; i < graph.n; i++)
	{
		plan_links(&plan, graph.vertices[i].entity);
		plan_loosening(&plan, &graph, circles, &graph.vertices[i]);
	}

	/*
	 * without loosened references; a referring entity goes before its target
	 */
	find_circles(&graph, circles);
	plan_rows(&plan, &graph);
	return plan;
}

/* -------- rows, some at a time -------- */

typedef struct Ids
{
	int			n;
	int			max;
	Datum	   *ids;
} Ids;

static void
add_id(Ids *ids, Datum id)
{
	pg_uuid_t  *copy = palloc(sizeof(pg_uuid_t));

	*copy = *DatumGetUUIDP(id);
	*EA_GROW_ARRAY(ids->ids, ids->n, ids->max) = UUIDPGetDatum(copy);
}

static void
id_row(void *arg, TupleTableSlot *slot)
{
	add_id(arg, slot->tts_values[0]);
}

static void
add_array(EaSqlBuf *b, const Ids *ids, int from)
{
	ea_sqlbuf_value(b, UUIDARRAYOID,
					PointerGetDatum(construct_array(ids->ids + from,
													ids->n - from, UUIDOID,
													UUID_LEN, false,
													TYPALIGN_CHAR)), false);
}

static void
add_among(EaSqlBuf *b, int alias, const char *column, const Ids *ids,
		  int from)
{
	ea_sqlbuf_addf(b, " AND t%d.%s = ANY (", alias, column);
	add_array(b, ids, from);
	ea_sqlbuf_add(b, ")");
}

/* The newest rows behind the position of which there is something to do. */
static void
find_rows(EaRequest *req, EaEntity *entity, const char *where, int limit,
		  const pg_uuid_t *position, Ids *ids)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, entity->id_column, UUIDOID);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	if (where != NULL)
		ea_sqlbuf_addf(&b, " AND (%s)", where);
	if (position != NULL)
	{
		ea_sqlbuf_addf(&b, " AND t%d.%s < ", alias, entity->id_column);
		ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(position), false);
	}
	ea_sqlbuf_addf(&b, " ORDER BY t%d.%s DESC LIMIT %d", alias,
				   entity->id_column, limit);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, id_row, ids);
}

static void
delete_rows(EaRequest *req, EaEntity *entity, const Ids *ids)
{
	EaSqlBuf	b;
	int			alias;

	ea_writing_begin(req, entity, EA_WRITING_DELETES);
	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	add_among(&b, ea_sqlbuf_delete(&b, entity), entity->id_column, ids, 0);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL);

	/* those of requests under way may have gone before, but none stays */
	if (!ea_written_asks(&b))
		return;
	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	add_among(&b, alias, entity->id_column, ids, 0);
	ea_written_none(&b, entity);
}

static void
loosen_rows(EaRequest *req, EaEntity *entity, const EaErase *erase,
			const Ids *ids)
{
	EaSqlBuf	b;
	int			alias;

	ea_writing_begin(req, entity, EA_WRITING_DELETES);
	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	alias = ea_sqlbuf_update(&b, entity, erase->set, EA_OP_DELETE);
	ea_sqlbuf_addf(&b, " AND (%s)", erase->where);
	add_among(&b, alias, entity->id_column, ids, 0);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL);
	if (!ea_written_asks(&b))
		return;
	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_sqlbuf_addf(&b, " AND (%s)", erase->where);
	add_among(&b, alias, entity->id_column, ids, 0);
	ea_written_none(&b, entity);
}

typedef struct Pairs
{
	Ids			near;
	Ids			far;
} Pairs;

static void
pair_row(void *arg, TupleTableSlot *slot)
{
	Pairs	   *pairs = arg;

	add_id(&pairs->near, slot->tts_values[0]);
	add_id(&pairs->far, slot->tts_values[1]);
}

static void
add_pairs(EaSqlBuf *b, int alias, const EaField *field, const Pairs *pairs)
{
	ea_sqlbuf_addf(b, " AND (t%d.%s, t%d.%s) IN (SELECT * FROM unnest(",
				   alias, field->join_near, alias, field->join_far);
	add_array(b, &pairs->near, 0);
	ea_sqlbuf_add(b, ", ");
	add_array(b, &pairs->far, 0);
	ea_sqlbuf_add(b, "))");
}

/* Links of the newest rows.  A row may have more than fit in one go. */
static int64
erase_links(EaRequest *req, EaField *field, int limit, bool *has_position,
			pg_uuid_t *position)
{
	Pairs		pairs = {{0}};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, field->join_near, UUIDOID);
	ea_sqlbuf_add(&b, ", ");
	ea_sqlbuf_select(&b, 0, field->join_far, UUIDOID);
	alias = ea_sqlbuf_join_from(&b, field);
	if (*has_position)
	{
		ea_sqlbuf_addf(&b, " AND t%d.%s <= ", alias, field->join_near);
		ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(position), false);
	}
	ea_sqlbuf_addf(&b, " ORDER BY t%d.%s DESC, t%d.%s DESC LIMIT %d", alias,
				   field->join_near, alias, field->join_far, limit);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, pair_row, &pairs);
	if (pairs.near.n == 0)
		return 0;

	ea_sqlbuf_init(&b, req);
	add_pairs(&b, ea_sqlbuf_join_delete(&b, field), field, &pairs);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL);
	if (ea_written_asks(&b))
	{
		ea_sqlbuf_init(&b, req);
		ea_sqlbuf_add(&b, "SELECT 1");
		add_pairs(&b, ea_sqlbuf_join_from(&b, field), field, &pairs);
		ea_written_none(&b, field->entity);
	}
	*has_position = true;
	*position = *DatumGetUUIDP(pairs.near.ids[pairs.near.n - 1]);
	return pairs.near.n;
}

/* -------- rows that need one another -------- */

/* The rows of one entity in a knot; those from `fresh` on are new. */
typedef struct Strand
{
	EaEntity   *entity;
	Ids			ids;
	int			fresh;
} Strand;

/* Rows of the strand that refer to fresh ones of another by this column. */
static bool
pull_rows(EaRequest *req, Strand *strand, const char *column, const Strand *by)
{
	int			before = strand->ids.n;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, strand->entity->id_column, UUIDOID);
	alias = ea_sqlbuf_from(&b, strand->entity, EA_OP_DELETE);
	add_among(&b, alias, column, &by->ids, by->fresh);
	if (before > 0)
	{
		ea_sqlbuf_addf(&b, " AND t%d.%s <> ALL (", alias,
					   strand->entity->id_column);
		add_array(&b, &strand->ids, 0);
		ea_sqlbuf_add(&b, ")");
	}
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, id_row, &strand->ids);
	return strand->ids.n > before;
}

/* All that refer to the fresh rows of one strand. */
static bool
pull_strands(EaRequest *req, Strand *strands, int n, Strand *by)
{
	bool		found = false;
	Strand		fixed = *by;

	for (int s = 0; s < n; s++)
	{
		EaEntity   *entity = strands[s].entity;

		for (int i = 0; i < entity->nfields; i++)
		{
			EaField    *field = &entity->fields[i];

			for (int m = 0; has_column(field) && m < field->nmembers; m++)
			{
				if (ea_catalog_target(field, m) == by->entity)
					found |= pull_rows(req, &strands[s],
									   field->members[m].column, &fixed);
			}
		}
	}
	by->fresh = fixed.ids.n;
	return found;
}

static void
defer_references(EaRequest *req, EaEntity *entity)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; has_column(field) && m < field->nmembers; m++)
			ea_links_defer(req, entity, field->members[m].column);
	}
}

/*
 * Some rows and whatever cannot be without them, however much that is.  The
 * newest come first, because what refers to them is mostly newer still.
 */
static int64
erase_knot(EaRequest *req, List *entities, int limit)
{
	int			n = list_length(entities);
	Strand	   *strands = palloc0(n * sizeof(Strand));
	int64		total = 0;
	bool		found;

	for (int s = 0; s < n; s++)
		strands[s].entity = list_nth(entities, s);
	for (int s = 0; s < n && total == 0; s++)
	{
		find_rows(req, strands[s].entity, NULL, limit, NULL,
				  &strands[s].ids);
		total += strands[s].ids.n;
	}
	if (total == 0)
		return 0;

	do
	{
		CHECK_FOR_INTERRUPTS();
		found = false;
		for (int s = 0; s < n; s++)
		{
			if (strands[s].fresh < strands[s].ids.n)
				found |= pull_strands(req, strands, n, &strands[s]);
		}
	} while (found);

	total = 0;
	for (int s = 0; s < n; s++)
		defer_references(req, strands[s].entity);
	for (int s = 0; s < n; s++)
	{
		if (strands[s].ids.n > 0)
			delete_rows(req, strands[s].entity, &strands[s].ids);
		total += strands[s].ids.n;
	}
	ea_links_check_deferred(req);
	return total;
}

int64
ea_erase_run(EaRequest *req, const EaErase *erase, int limit,
			 bool *has_position, pg_uuid_t *position)
{
	EaEntity   *entity = linitial(erase->entities);
	Ids			ids = {0};

	if (erase->kind == EA_ERASE_LINKS)
		return erase_links(req, erase->field, limit, has_position, position);
	if (erase->kind == EA_ERASE_KNOT)
		return erase_knot(req, erase->entities, limit);

	find_rows(req, entity, erase->where, limit,
			  *has_position ? position : NULL, &ids);
	if (ids.n == 0)
		return 0;
	if (erase->kind == EA_ERASE_LOOSEN)
		loosen_rows(req, entity, erase, &ids);
	else
		delete_rows(req, entity, &ids);
	*has_position = true;
	*position = *DatumGetUUIDP(ids.ids[ids.n - 1]);
	return ids.n;
}
