/* systemd's notification protocol: the test plays systemd, with a socket of its own. */
#define UNIT_OWN_MAIN
#include "unit.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "loop/notify.h"

static int sock;

static void
expect(const char *want)
{
	char got[512];
	ssize_t n = recv(sock, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, want);
}

static void
expect_nothing(void)
{
	char c;

	assert_int_equal(recv(sock, &c, 1, MSG_DONTWAIT), -1);
}

/* Binds an abstract address, which leaves no file. */
static int
bind_socket(void **state UNUSED)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	socklen_t len;
	char name[64];

	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(name, sizeof(name), "@rqd-test-%ld", (long)getpid());
	memcpy(sa.sun_path + 1, name + 1, strlen(name) - 1);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	setenv("NOTIFY_SOCKET", name, 1);
	return bind(sock, (struct sockaddr *)&sa, len);
}

static int
close_socket(void **state UNUSED)
{
	unsetenv("NOTIFY_SOCKET");
	return close(sock);
}

TEST(test_messages)
{
	char got[128], *p;
	struct timespec ts;
	ssize_t n;
	long long usec, now;

	notify("READY=1");
	expect("READY=1");
	notify("STOPPING=1");
	expect("STOPPING=1");
	notify("STATUS=%d running", 3);
	expect("STATUS=3 running");

	clock_fake(5, 5);
	notify_reloading();
	clock_real(0);
	n = recv(sock, got, sizeof(got) - 1, MSG_DONTWAIT);
	assert_true(n > 0);
	got[n] = '\0';
	p = strstr(got, "RELOADING=1\nMONOTONIC_USEC=");
	assert_ptr_equal(p, got);
	usec = strtoll(strrchr(got, '=') + 1, NULL, 10);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
	assert_true(usec <= now && usec > now - 60000000);
}

TEST(test_none)
{
	char *name = xstrdup(getenv("NOTIFY_SOCKET"));
	char longname[300];

	unsetenv("NOTIFY_SOCKET");
	notify("READY=1");
	notify("STATUS=x");
	setenv("NOTIFY_SOCKET", "", 1);
	notify("READY=1");
	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	notify("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify("READY=1");
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	notify("READY=1");
	memset(longname, 'x', sizeof(longname));
	longname[0] = '/';
	longname[sizeof(longname) - 1] = '\0';
	setenv("NOTIFY_SOCKET", longname, 1);
	notify("READY=1");
	setenv("NOTIFY_SOCKET", name, 1);
	free(name);
	expect_nothing();
}

/* A manager that does not read its socket does not block rqd for long. */
TEST(test_stuck)
{
	usec_t start = clock_mono();
	int i, n = 0;
	char c;

	for (i = 0; i < 2000 && clock_mono() - start < 50 * MSEC; i++)
		notify("WATCHDOG=1");
	start = clock_mono();
	notify("WATCHDOG=1");
	assert_true(clock_mono() - start < 5 * SEC);
	while (recv(sock, &c, 1, MSG_DONTWAIT) == 1)
		n++;
	assert_true(n > 0);
	notify("READY=1");
	expect("READY=1");
}

TEST(test_watchdog)
{
	static const char *const junk[] = { "junk", "", "0", "-3", " 3", "3s", "+3",
	    "18446744073709551615", "99999999999999999999" };
	char pid[32];

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	assert_int_equal(notify_watchdog_interval(), 0);
	setenv("WATCHDOG_USEC", "3000000", 1);
	assert_int_equal(notify_watchdog_interval(), 1500000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_interval(), getpid() == 1 ? 1500000 : 0);
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_interval(), 1500000);
	for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
		setenv("WATCHDOG_USEC", junk[i], 1);
		assert_int_equal(notify_watchdog_interval(), 0);
	}
	setenv("WATCHDOG_USEC", "3000000", 1);
	setenv("WATCHDOG_PID", "junk", 1);
	assert_int_equal(notify_watchdog_interval(), 0);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

int
main(void)
{
	return unit_run(bind_socket, close_socket);
}
