/*
 * TLS.  Each connection gets a new OpenSSL context, so that renewed certificates are
 * used without a restart.
 *
 * hiredis' own contexts do not check the name in the server's certificate, and so
 * would accept any certificate of a public authority.
 */
#include <config.h>

#include "redis/tls.h"

#include <hiredis/hiredis.h>
#ifdef HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#ifdef HAVE_HIREDIS_SSL

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/trust.h"

static bool
is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

/* The last error of OpenSSL. */
static const char *
openssl_error(void)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return why != NULL ? why : "no reason given";
}

/*
 * Says why OpenSSL could not use the file.  If the file cannot be opened at all,
 * OpenSSL only says "BIO lib" or "system lib"; so this opens the file once more.
 */
static int
file_cause(char **cause, const char *option, const char *path)
{
	const char *why = openssl_error();
	int fd = trust_open(path), error = errno;

	if (fd == -1)
		return util_cause(cause, "TLS: %s: cannot read \"%s\": %s; write the path of a "
		    "PEM file that rqd may read", option, path, strerror(error));
	close(fd);
	return util_cause(cause, "TLS: %s: \"%s\" cannot be used: %s; it must be a PEM file with "
	    "%s", option, path, why,
	    strcmp(option, "tls_key") == 0 ? "the private key of tls_cert" : "certificates");
}

/* Reads the key through trust_open(), since perhaps only root may read it. */
static bool
use_key(SSL_CTX *ctx, const char *path)
{
	int fd = trust_open(path);
	BIO *bio = fd != -1 ? BIO_new_fd(fd, BIO_CLOSE) : NULL;
	EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
	bool ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(bio);
	return ok;
}

static int
load_files(SSL_CTX *ctx, const struct redis_options *opt, char **cause)
{
	if (!is_set(opt->tls_ca)) {
		if (SSL_CTX_set_default_verify_paths(ctx) != 1)
			return util_cause(cause, "TLS: the authorities of the system: %s; "
			    "install ca-certificates or set tls_ca", openssl_error());
	} else if (SSL_CTX_load_verify_locations(ctx, opt->tls_ca, NULL) != 1) {
		return file_cause(cause, "tls_ca", opt->tls_ca);
	}
	if (!is_set(opt->tls_cert) && !is_set(opt->tls_key))
		return 0;
	if (!is_set(opt->tls_cert) || !is_set(opt->tls_key))
		return util_cause(cause, "TLS: tls_cert and tls_key go together");
	if (SSL_CTX_use_certificate_chain_file(ctx, opt->tls_cert) != 1)
		return file_cause(cause, "tls_cert", opt->tls_cert);
	if (!use_key(ctx, opt->tls_key))
		return file_cause(cause, "tls_key", opt->tls_key);
	return 0;
}

/* Demands a certificate for this name, or this address. */
static bool
expect_name(SSL *ssl, const char *name)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1)
		return true;
	ERR_clear_error();
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* OpenSSL calls it at each step of a handshake, and for alerts. */
static void
tls_watch(const SSL *ssl, int where, int ret)
{
	struct tls_trouble *t = SSL_get_app_data(ssl);

	if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT) {
		t->alert = ret & 0xff;
	} else if ((where & SSL_CB_EXIT) != 0 && ret <= 0) {
		t->refused = SSL_get_verify_result(ssl);
		switch (ERR_GET_REASON(ERR_peek_last_error())) {
		case SSL_R_WRONG_VERSION_NUMBER:
		case SSL_R_HTTP_REQUEST:
		case SSL_R_PACKET_LENGTH_TOO_LONG:
			t->no_tls = true;
			break;
		}
	}
}

char *
tls_cause(const struct tls_trouble *t, const struct redis_options *opt, const char *host)
{
	const char *name = is_set(opt->tls_name) ? opt->tls_name : host;

	if (t->no_tls)
		return xstrdup("TLS: this port does not speak TLS: set redis.tls = false, or write "
		    "the TLS port into redis.server");
	if (t->refused == X509_V_ERR_HOSTNAME_MISMATCH ||
	    t->refused == X509_V_ERR_IP_ADDRESS_MISMATCH)
		return xasprintf("TLS: the server's certificate is not for \"%s\": set "
		    "redis.tls_name to a name in the certificate", name != NULL ? name : "");
	if (t->refused == X509_V_ERR_CERT_HAS_EXPIRED ||
	    t->refused == X509_V_ERR_CERT_NOT_YET_VALID)
		return xasprintf("TLS: the server's certificate is not accepted: %s: renew it, or "
		    "correct the clock of this host", X509_verify_cert_error_string(t->refused));
	if (t->refused != X509_V_OK)
		return xasprintf("TLS: the server's certificate is not accepted: %s: set "
		    "redis.tls_ca to the certificate of its authority",
		    X509_verify_cert_error_string(t->refused));
	if (t->alert != 0 && !is_set(opt->tls_cert))
		return xasprintf("TLS: the server asks for a client certificate (%s): set "
		    "redis.tls_cert and redis.tls_key, or tls-auth-clients no in redis.conf",
		    SSL_alert_desc_string_long(t->alert));
	if (t->alert != 0)
		return xasprintf("TLS: the server refuses the certificate of redis.tls_cert (%s): "
		    "its authority must be in tls-ca-cert-file of redis.conf",
		    SSL_alert_desc_string_long(t->alert));
	return NULL;
}

int
tls_start(struct redisContext *c, const struct redis_options *opt, const char *host,
    struct tls_trouble *trouble, char **cause)
{
	const char *name = is_set(opt->tls_name) ? opt->tls_name : host;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;

	if (ctx == NULL)
		return util_cause(cause, "TLS: out of memory");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    load_files(ctx, opt, cause) == -1) {
		SSL_CTX_free(ctx);
		return -1;
	}
	ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);		/* ssl keeps it */
	if (ssl == NULL || (name != NULL && !expect_name(ssl, name))) {
		SSL_free(ssl);
		return util_cause(cause, "TLS: cannot be set up for %s", name);
	}
	SSL_set_app_data(ssl, trouble);
	SSL_set_info_callback(ssl, tls_watch);
	if (redisInitiateSSL(c, ssl) == REDIS_OK)
		return 0;
	SSL_free(ssl);
	*cause = tls_cause(trouble, opt, host);
	return *cause != NULL ? -1 : util_cause(cause, "TLS: the handshake failed: %s", c->errstr);
}

#else

int
tls_start(struct redisContext *c UNUSED, const struct redis_options *opt UNUSED,
    const char *host UNUSED, struct tls_trouble *trouble UNUSED, char **cause)
{
	return util_cause(cause, "this rqd was built without TLS: "
	    "its hiredis has no hiredis_ssl; use a tunnel, or set tls = false");
}

char *
tls_cause(const struct tls_trouble *t UNUSED, const struct redis_options *opt UNUSED,
    const char *host UNUSED)
{
	return NULL;
}

#endif
