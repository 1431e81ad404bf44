/*
 * Whether this library's objects in the database are of its own version.
 *
 * Between the installation of new files and ALTER EXTENSION ... UPDATE a new
 * session has the new library and the old objects.  Much works there, and what
 * fails is no fault of a request.
 */
#ifndef EA_VERSION_H
#define EA_VERSION_H

/*
 * Called by each request before its work, but looks once a session: a session
 * that is open during an update of its objects goes on as before.
 */
extern void ea_version_note(void);

/*
 * The objects were of another version when the session began.  If so, an error
 * that would be 500 becomes ERRCODE_CANNOT_CONNECT_NOW: the caller may try
 * again later, in another session.
 */
extern bool ea_version_differs(void);
extern void ea_version_blame(ErrorData *edata);

#endif							/* EA_VERSION_H */
