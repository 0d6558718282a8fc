/*
 * TLS.  The context is made anew for every connection, so that renewed
 * certificates are seen without a restart; it takes no more than the reading
 * of the files, and the connection keeps what it needs of it.
 *
 * hiredis checks the server's certificate against the authorities, and not
 * against its name.
 */
#include <config.h>

#include "redis/tls.h"

#include <hiredis/hiredis.h>
#ifdef HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#endif

#ifdef HAVE_HIREDIS_SSL

/* An option's text, or NULL where it is not set. */
static const char *
tls_option(const char *s)
{
	return s != NULL && s[0] != '\0' ? s : NULL;
}

int
tls_start(struct redisContext *c, const struct redis_options *opt, const char *host,
    char **cause)
{
	static bool initialized;
	redisSSLContextError error = REDIS_SSL_CTX_NONE;
	redisSSLContext *ssl;
	int rc;

	if (!initialized) {
		redisInitOpenSSL();
		initialized = true;
	}
	ssl = redisCreateSSLContext(tls_option(opt->tls_ca), NULL, tls_option(opt->tls_cert),
	    tls_option(opt->tls_key), host, &error);
	if (ssl == NULL)
		return util_cause(cause, "TLS: %s", redisSSLContextGetError(error));
	rc = redisInitiateSSLWithContext(c, ssl);
	redisFreeSSLContext(ssl);
	return rc == REDIS_OK ? 0 : util_cause(cause, "TLS: %s", c->errstr);
}

#else

int
tls_start(struct redisContext *c UNUSED, const struct redis_options *opt UNUSED,
    const char *host UNUSED, char **cause)
{
	return util_cause(cause, "this rqd was built without TLS: "
	    "its hiredis has no hiredis_ssl; use stunnel, or set tls = false");
}

#endif
