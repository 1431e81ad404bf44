/*
 * The declared state, as apply_manifest() stored it.
 */
#ifndef EA_STORED_H
#define EA_STORED_H

#include "base/jsonread.h"
#include "base/names.h"
#include "nodes/pg_list.h"

typedef struct EaStored
{
	int			revision;		/* 0: nothing yet */
	char	   *checksum;
	bool		in_order;		/* fields have that of the documents */
	char	   *service;		/* definition, NULL without one */
	EaJson	   *service_tree;
	EaNameMap  *definitions;	/* of entities, char * */
	List	   *trees;			/* the same, EaJson * */
	List	   *texts;			/* the same, char * */
	List	   *names;			/* of entities, char * */
	EaNameMap  *pending;		/* what the tables lack so far */
} EaStored;

/* Everything is made in SPI's memory context; SPI must be connected. */
extern void ea_stored_load(EaStored *stored);

/* The documents of its revision, as an array, or NULL. */
extern EaJson *ea_stored_documents(const EaStored *stored);

#endif							/* EA_STORED_H */
