/*
 * TLS against a redis-server with a TLS port, and certificates made by openssl(1).  If
 * hiredis has no TLS, rqd must say so.
 */
#include <config.h>

#include "harness.h"

#include "redis/script.h"

const struct script script_table[] = { SCRIPT_ECHO, { NULL, NULL, 0, NULL } };

struct fixture {
	struct harness h;
	struct server s;
	struct call call;
	char	ca[128], cert[128], key[128], missing[128];
};

static int
teardown(void **state)
{
	struct fixture *f = *state;

	harness_done(&f->h);
	server_stop(&f->s);
	free(f);
	return 0;
}

#ifdef HAVE_HIREDIS_SSL

static void
make_certificates(struct fixture *f)
{
	char cmd[512];

	snprintf(f->ca, sizeof(f->ca), "%s/ca.crt", f->s.dir);
	snprintf(f->cert, sizeof(f->cert), "%s/ca.crt", f->s.dir);
	snprintf(f->key, sizeof(f->key), "%s/ca.key", f->s.dir);
	snprintf(f->missing, sizeof(f->missing), "%s/missing", f->s.dir);
	snprintf(cmd, sizeof(cmd), "openssl req -x509 -newkey rsa:2048 -nodes -days 2 "
	    "-subj /CN=redis -addext subjectAltName=IP:127.0.0.1,DNS:queue.example "
	    "-keyout %s -out %s 2>%s/openssl.log", f->key, f->cert, f->s.dir);
	assert_int_equal(system(cmd), 0);
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	int port = server_free_port();

	server_start(&f->s, NULL);
	make_certificates(f);
	server_do(&f->s, "CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s "
	    "tls-auth-clients no tls-port %d", f->cert, f->key, f->ca, port);
	harness_init(&f->h, "127.0.0.1", 2 * SEC);
	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("127.0.0.1:%d", port);
	f->h.opt.tls = true;
	f->h.opt.tls_ca = f->ca;
	harness_open(&f->h, 0);
	*state = f;
	return 0;
}

TEST_WITH(test_tls, setup, teardown)
{
	struct fixture *f = *state;
	char *big = xmalloc(3000001);
	const char *argv[] = { big };

	conn_start(f->h.conn);
	WAIT(&f->h, f->h.ups == 1);
	memset(big, 'x', 3000000);
	big[3000000] = '\0';
	call_script(f->h.conn, script_table, call_answered, &f->call, 0, 1, argv,
	    (size_t[]){ 3000000 });
	WAIT(&f->h, f->call.answers == 1);
	assert_int_equal(f->call.answer, CONN_REPLY);
	assert_int_equal(f->call.error, REPLY_OK);
	assert_int_equal(f->call.text[5], 'x');
	/* the server demands a certificate of the client */
	server_do(&f->s, "CONFIG SET tls-auth-clients yes");
	f->h.opt.tls_cert = f->cert;
	f->h.opt.tls_key = f->key;
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
	free(big);
}

/* The certificate is valid, but for another name: the connection is refused. */
TEST_WITH(test_name, setup, teardown)
{
	struct fixture *f = *state;

	f->h.opt.tls_name = (char *)(uintptr_t)"other.example";
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "is not for \"other.example\": set redis.tls_name");
	f->h.opt.tls_name = (char *)(uintptr_t)"queue.example";
	WAIT(&f->h, f->h.ups == 1);
	f->h.opt.tls_name = NULL;
}

TEST_WITH(test_refused, setup, teardown)
{
	struct fixture *f = *state;

	f->h.opt.tls_ca = f->missing;
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "TLS: tls_ca: cannot read");
	/* a file without a certificate */
	f->h.opt.tls_ca = f->key;
	WAIT_CAUSE(&f->h, "it must be a PEM file with certificates");
	/* the system's authorities do not know this server */
	f->h.opt.tls_ca = NULL;
	WAIT_CAUSE(&f->h, "certificate is not accepted: self-signed certificate: set redis.tls_ca");
	f->h.opt.tls_ca = f->ca;
	f->h.opt.tls_cert = f->cert;
	WAIT_CAUSE(&f->h, "TLS: tls_cert and tls_key go together");
	/* each file in the place of the other, and an empty one */
	f->h.opt.tls_key = f->cert;
	WAIT_CAUSE(&f->h, "TLS: tls_key: \"");
	WAIT_CAUSE(&f->h, "with the private key of tls_cert");
	f->h.opt.tls_key = f->key;
	f->h.opt.tls_cert = f->key;
	WAIT_CAUSE(&f->h, "TLS: tls_cert: \"");
	f->h.opt.tls_cert = (char *)(uintptr_t)"/dev/null";
	WAIT_CAUSE(&f->h, "TLS: tls_cert: \"/dev/null\" cannot be used");
	f->h.opt.tls_cert = f->missing;
	WAIT_CAUSE(&f->h, "TLS: tls_cert: cannot read");
	f->h.opt.tls_cert = f->cert;
	f->h.opt.tls_key = f->missing;
	WAIT_CAUSE(&f->h, "TLS: tls_key: cannot read");
	f->h.opt.tls_cert = f->h.opt.tls_key = NULL;
	WAIT(&f->h, f->h.ups == 1);
	/* the client speaks no TLS to a port with TLS */
	f->h.opt.tls = false;
	conn_reset(f->h.conn, "again");
	WAIT_CAUSE(&f->h, "set redis.tls = true");
	f->h.opt.tls = true;
	WAIT(&f->h, f->h.ups == 2);
}

/* The server asks for a certificate, and the client has none. */
TEST_WITH(test_client_certificate, setup, teardown)
{
	struct fixture *f = *state;

	server_do(&f->s, "CONFIG SET tls-auth-clients yes");
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "asks for a client certificate");
	WAIT_CAUSE(&f->h, "set redis.tls_cert and redis.tls_key");
	f->h.opt.tls_cert = f->cert;
	f->h.opt.tls_key = f->key;
	WAIT(&f->h, f->h.ups == 1);
}

/* TLS to a port without it. */
TEST_WITH(test_plain_port, setup, teardown)
{
	struct fixture *f = *state;
	char *speaks = f->h.servers[0];
	int port = server_free_port();

	server_do(&f->s, "CONFIG SET port %d", port);
	f->h.servers[0] = xasprintf("127.0.0.1:%d", port);
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "this port does not speak TLS, set redis.tls = false");
	free(f->h.servers[0]);
	f->h.servers[0] = speaks;
	WAIT(&f->h, f->h.ups == 1);
}

#else

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	server_start_tcp(&f->s);
	harness_init(&f->h, f->s.uri, 2 * SEC);
	f->h.opt.tls = true;
	harness_open(&f->h, 0);
	*state = f;
	return 0;
}

TEST_WITH(test_not_built, setup, teardown)
{
	struct fixture *f = *state;

	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "this rqd was built without TLS");
	f->h.opt.tls = false;
	WAIT(&f->h, f->h.ups == 1);
}

#endif
