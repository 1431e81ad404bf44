#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_memory.h"

#define BLOCK_SIZE (256 * 1024)
#define ALIGNMENT sizeof(max_align_t)

struct memory_block
{
	struct memory_block *next;
	size_t		size;
	size_t		used;
	max_align_t bytes[];
};

void
memory_none(void)
{
	fprintf(stderr, "entityapi-shim introspect: out of memory\n");
	exit(1);
}

void *
memory_get(struct memory *memory, size_t size)
{
	struct memory_block *block = memory->blocks;
	void	   *place;

	if (size > SIZE_MAX / 2)
		memory_none();
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (block == NULL || block->size - block->used < size)
	{
		size_t		room = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		block = calloc(1, sizeof(*block) + room);
		if (block == NULL)
			memory_none();
		block->size = room;
		block->next = memory->blocks;
		memory->blocks = block;
	}
	place = (char *) block->bytes + block->used;
	block->used += size;
	return place;
}

void *
memory_array(struct memory *memory, size_t count, size_t size)
{
	if (count > SIZE_MAX / 4 / size)
		memory_none();
	return memory_get(memory, (count > 0 ? count : 1) * size);
}

char *
memory_text(struct memory *memory, const char *text, size_t length)
{
	char	   *copy = memory_get(memory, length + 1);

	memcpy(copy, text, length);
	return copy;
}

char *
memory_take(struct memory *memory, struct buffer *buffer)
{
	char	   *text;

	if (buffer->failed)
		memory_none();
	text = memory_text(memory, buffer->data ? buffer->data : "",
					   buffer->length);
	buffer_free(buffer);
	return text;
}

char *
memory_printf(struct memory *memory, const char *format,...)
{
	va_list		arguments;
	char	   *text;
	int			length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		memory_none();
	text = memory_get(memory, length + 1);
	va_start(arguments, format);
	vsnprintf(text, length + 1, format, arguments);
	va_end(arguments);
	return text;
}

void
memory_free(struct memory *memory)
{
	while (memory->blocks != NULL)
	{
		struct memory_block *block = memory->blocks;

		memory->blocks = block->next;
		free(block);
	}
}
