/*
 * The changes that documents would make: apply_manifest() up to its first
 * change, for callers that only look.
 */
#ifndef EA_APPLY_H
#define EA_APPLY_H

#include "fmgr.h"

#include "apply/stored.h"
#include "ddl/ddl.h"
#include "manifest/manifest.h"

/* The wanted state. */
typedef struct EaWanted
{
	char	   *documents;
	char	   *checksum;
	char	   *service;
	char	   *single_tenant;
	bool		new_tenant;		/* the built-in tenant has to be made */
	List	   *definitions;	/* char *, in the order of m->entities */
	List	   *trees;
	bool		changed;
	bool		in_order;		/* fields have the order of the documents */
} EaWanted;

typedef struct EaApplyPlan
{
	EaManifest *m;
	EaStored	stored;
	EaWanted	wanted;
	EaDdlSource from;
	EaDdlSource to;
	EaDdlRequest change;
	List	   *statements;		/* of EaDdlStatement * */
	bool		other_owner;	/* or role, of the application's tables */
} EaApplyPlan;

/* No argument is null; rows are returned. */
extern void ea_apply_begin(FunctionCallInfo fcinfo, const char *function);

/*
 * Plan what the first argument declares; the losses that are allowed are the
 * one of that number.  It is the only change until the transaction ends.  SPI
 * must be connected, and everything is made in its memory context.
 *
 * Refuses with JA400 and all faults as DETAIL; with 55P03 while another change
 * is under way.
 */
extern void ea_apply_plan(EaApplyPlan *plan, FunctionCallInfo fcinfo,
						  int losses_at);

#endif							/* EA_APPLY_H */
