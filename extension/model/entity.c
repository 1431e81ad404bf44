#include "postgres.h"

#include "model/entity.h"

const char *const ea_catalog_operations[EA_OPS + 1] = {
	"create", "read", "update", "delete", "restore", "history", NULL
};

EaField *
ea_catalog_field(EaEntity *entity, const char *name, int len)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (strncmp(field->name, name, len) == 0 && field->name[len] == '\0')
			return field;
	}
	return NULL;
}
