/*
 * Memory contexts: there is one, and it goes when a check ends.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "standin/memory.h"

typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *before;
	Size		size;
	Size		unused;			/* what follows is aligned for all types */
} Chunk;

StaticAssertDecl(sizeof(Chunk) % 16 == 0, "chunks must be aligned");

MemoryContext CurrentMemoryContext = NULL;

static Chunk *chunks = NULL;

static void
hang(Chunk *chunk, Size size)
{
	chunk->size = size;
	chunk->before = NULL;
	chunk->next = chunks;
	if (chunks != NULL)
		chunks->before = chunk;
	chunks = chunk;
}

static void
unhang(Chunk *chunk)
{
	if (chunk->before != NULL)
		chunk->before->next = chunk->next;
	else
		chunks = chunk->next;
	if (chunk->next != NULL)
		chunk->next->before = chunk->before;
}

static void *
allocate(Chunk *old, Size size)
{
	Chunk	   *chunk;

	if (size > MaxAllocSize)
		ereport(ERROR, (errmsg("invalid memory alloc request size %zu",
							   size)));
	if (old != NULL)
		unhang(old);
	chunk = realloc(old, sizeof(Chunk) + size);
	if (chunk == NULL)
	{
		if (old != NULL)
			hang(old, old->size);
		ereport(ERROR, (errmsg("out of memory")));
	}
	hang(chunk, size);
	return chunk + 1;
}

void *
palloc(Size size)
{
	return allocate(NULL, size);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
palloc_extended(Size size, int flags)
{
	return flags & MCXT_ALLOC_ZERO ? palloc0(size) : palloc(size);
}

void *
repalloc(void *pointer, Size size)
{
	return allocate((Chunk *) pointer - 1, size);
}

void *
repalloc_huge(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

/* Of nothing, too: the frontend's, which libpgcommon is made for, takes it. */
void
pfree(void *pointer)
{
	Chunk	   *chunk = (Chunk *) pointer - 1;

	if (pointer == NULL)
		return;
	unhang(chunk);
	free(chunk);
}

char *
pnstrdup(const char *text, Size length)
{
	char	   *copy;

	length = strnlen(text, length);
	copy = palloc(length + 1);
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

char *
pstrdup(const char *text)
{
	return pnstrdup(text, strlen(text));
}

void
standin_memory_free(void)
{
	while (chunks != NULL)
		pfree(chunks + 1);
}
