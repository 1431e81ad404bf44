/*
 * The settings of Citus that a request of a distributed deployment needs.
 */
#ifndef EA_DISTRIBUTED_SETTINGS_H
#define EA_DISTRIBUTED_SETTINGS_H

/* No fewer than there are. */
#define EA_DISTRIBUTED_SETTINGS 24

typedef struct EaDistributedSettings
{
	int			nest;
	int			values[EA_DISTRIBUTED_SETTINGS];
} EaDistributedSettings;

/*
 * From here to the end they are as they must be, whatever the caller has set,
 * and then again as it had them.  The end is to be reached after an error,
 * too.
 */
extern void ea_distributed_settings_begin(EaDistributedSettings *before);
extern void ea_distributed_settings_end(const EaDistributedSettings *before);

/*
 * A statement over pg_class finds shards, too.  Citus would leave them out of
 * the answers to clients' sessions, and so each question about one would be
 * answered as if nothing were amiss.  Where Citus is not, nothing is set.
 */
extern void ea_distributed_settings_show_shards(void);

/*
 * The limits of this session hold on the nodes that the transaction writes to,
 * until its end.  SPI must be connected.
 */
extern void ea_distributed_settings_carry(void);

#endif							/* EA_DISTRIBUTED_SETTINGS_H */
