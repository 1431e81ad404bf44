#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command/rights.h"

/* Columns of RIGHTS_SQL; those up to RIGHTS are shown. */
enum
{
	ROLE, ENTITY, BEFORE, AFTER, GAINED, LOST, RIGHTS, NOBODY, PARTLY
};

static const char *const titles[] =
{"role", "entity", "rows", "then", "new", "gone", "rights"};

static void
print_cell(const char *text, int column, int width)
{
	if (column == RIGHTS)
		printf("%s%s\n", *text == '\0' ? "" : "  ", text);
	else
		printf("%s%*s", column == ROLE ? "" : "  ",
			   column <= ENTITY ? -width : width, text);
}

static bool
any(const PGresult *result, int column)
{
	int			row;

	for (row = 0; row < PQntuples(result); row++)
	{
		if (PQgetvalue(result, row, column)[0] == 't')
			return true;
	}
	return false;
}

void
rights_print(const PGresult *result)
{
	int			widths[RIGHTS + 1];
	int			column;
	int			row;

	putchar('\n');
	if (PQntuples(result) == 0)
		puts("no role gains or loses anything");
	for (column = 0; column <= RIGHTS; column++)
	{
		widths[column] = strlen(titles[column]);
		for (row = 0; row < PQntuples(result); row++)
		{
			int			length = PQgetlength(result, row, column);

			if (length > widths[column])
				widths[column] = length;
		}
	}
	for (row = -1; row < PQntuples(result) && PQntuples(result) > 0; row++)
	{
		for (column = 0; column <= RIGHTS; column++)
			print_cell(row < 0 ? titles[column] :
					   PQgetvalue(result, row, column), column,
					   widths[column]);
	}
	if (any(result, NOBODY))
		puts("-: nobody has this role");
	if (any(result, PARTLY))
		puts("*: not all rows, or not all who have the role, were looked at");
}
