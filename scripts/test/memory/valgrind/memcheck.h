/*
 * memcheck.h: Valgrind's client requests, as far as PostgreSQL makes them,
 * told to AddressSanitizer instead.
 *
 * PostgreSQL built with USE_VALGRIND says of each chunk of palloc where it
 * begins and ends, when it is freed and when a buffer is pinned.  This file,
 * found before the real one, turns what must not be touched into poisoned
 * memory, so that palloc is exact to the byte.  AddressSanitizer does not
 * know of memory that is addressable and undefined; that is Valgrind's part.
 */
#ifndef EA_MEMCHECK_H
#define EA_MEMCHECK_H

#include <sanitizer/asan_interface.h>

#define VALGRIND_MAKE_MEM_NOACCESS(addr, size) \
	ASAN_POISON_MEMORY_REGION(addr, size)
#define VALGRIND_MAKE_MEM_DEFINED(addr, size) \
	ASAN_UNPOISON_MEMORY_REGION(addr, size)
#define VALGRIND_MAKE_MEM_UNDEFINED(addr, size) \
	ASAN_UNPOISON_MEMORY_REGION(addr, size)
#define VALGRIND_CHECK_MEM_IS_DEFINED(addr, size) ((void) 0)

/* A pool is a memory context; its blocks come from malloc(). */
#define VALGRIND_CREATE_MEMPOOL(context, redzones, zeroed) ((void) 0)
#define VALGRIND_CREATE_MEMPOOL_EXT(context, redzones, zeroed, flags) \
	((void) 0)
#define VALGRIND_DESTROY_MEMPOOL(context) ((void) 0)
#define VALGRIND_MOVE_MEMPOOL(from, to) ((void) 0)
#define VALGRIND_MEMPOOL_ALLOC(context, addr, size) \
	ASAN_UNPOISON_MEMORY_REGION(addr, size)
#define VALGRIND_MEMPOOL_FREE(context, addr) ((void) 0)
#define VALGRIND_MEMPOOL_CHANGE(context, old, new, size) \
	ASAN_UNPOISON_MEMORY_REGION(new, size)
#define VALGRIND_MEMPOOL_TRIM(context, addr, size) ((void) 0)

#define VALGRIND_DO_LEAK_CHECK ((void) 0)
#define VALGRIND_COUNT_ERRORS 0
#define VALGRIND_PRINTF(...) ((void) 0)
#define RUNNING_ON_VALGRIND 0

#endif
