/*
 * gettext.c: to be loaded before a server together with a sanitizer.
 *
 * Libraries of the server's libraries name their translations before the
 * sanitizer is ready, and the lock that is taken then is never given back: the
 * server would wait for it forever.
 */
extern char *bindtextdomain(const char *domain, const char *folder);

char *
bindtextdomain(const char *domain, const char *folder)
{
	(void) domain;
	return (char *) folder;
}
