/*
 * The settings of Citus that a request of a distributed deployment needs.
 */
#ifndef EA_DISTRIBUTED_SETTINGS_H
#define EA_DISTRIBUTED_SETTINGS_H

/*
 * Until the end of the innermost pin (engine/pin.h), whatever the caller has
 * set.  Settings that are right already cost a comparison each.
 */
extern void ea_distributed_settings_pin(void);

/*
 * A statement over pg_class finds shards, too.  Citus would leave them out of
 * what clients' sessions ask, and so whatever is asked of one had the answer
 * that nothing is amiss.  Where Citus is not, nothing is set.
 */
extern void ea_distributed_settings_show_shards(void);

/*
 * The same for the style of times, whoever calls: values go to other nodes as
 * text, and in other styles 05/06 is read there as it is by default.
 */
extern void ea_distributed_settings_text(void);

/*
 * The limits of this session hold on the nodes that the transaction writes to,
 * until its end.  SPI must be connected.
 */
extern void ea_distributed_settings_carry(void);

#endif							/* EA_DISTRIBUTED_SETTINGS_H */
