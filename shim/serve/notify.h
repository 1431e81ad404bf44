/*
 * Word to the service manager that started us (sd_notify).
 */
#ifndef NOTIFY_H
#define NOTIFY_H

/*
 * Reads where the service manager wants to hear from us, and how often.
 * Without one the functions below do nothing.
 */
extern void notify_start(void);

/* Sends assignments, one a line, such as "READY=1\nSTATUS=Serving". */
extern void notify_send(const char *format,...)
			__attribute__((format(printf, 1, 2)));

/* Tells that we are alive, where that is wanted and if it is time to. */
extern void notify_alive(void);

#endif							/* NOTIFY_H */
