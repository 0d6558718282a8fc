/*
 * The soak and other tests load this before libc (LD_PRELOAD).  It does to a daemon
 * what the kernel would do on a machine in trouble.  Another process gives the orders,
 * in a file that both have mapped; its name is in RQD_SHIM.  See shim.h.
 *
 * Only the daemon loads it: handlers get an environment of their own.  Functions that
 * an allocator may call before the constructor make their system calls directly.
 */
#include "shim.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct shim none;
static struct shim *shim = &none;

static int	(*real_clone)(int (*)(void *), void *, int, void *, ...);
static pid_t	(*real_fork)(void);

static void __attribute__((__constructor__))
shim_open(void)
{
	const char *path = getenv("RQD_SHIM");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	*(void **)&real_clone = dlsym(RTLD_NEXT, "clone");
	*(void **)&real_fork = dlsym(RTLD_NEXT, "fork");
	if (fd == -1)
		return;
	p = mmap(NULL, sizeof(*shim), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		shim = p;
	close(fd);
}

static int
fails(int error, volatile unsigned *times)
{
	++*times;
	errno = error;
	return -1;
}

/* A child makes its system calls directly, so the kernel must refuse execve() to it. */
static void
refuse_exec(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)shim->exec_error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, code };

	++shim->execs_failed;
	syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

struct start {
	int	(*fn)(void *);
	void	 *arg;
};

static int
started(void *p)
{
	struct start s = *(struct start *)p;

	if (shim->exec_error != 0)
		refuse_exec();
	return s.fn(s.arg);
}

/* The child's function and argument lie at the top of its own stack. */
int
clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct start *s = (struct start *)(((uintptr_t)stack - sizeof(*s)) & ~(uintptr_t)63);
	void *ptid, *tls, *ctid;
	va_list ap;

	/* With it, the spawner finds out whether it can share its memory. */
	if ((flags & CLONE_VFORK) != 0 && !shim->shares) {
		errno = EPERM;
		return -1;
	}
	if (shim->fork_error != 0)
		return fails(shim->fork_error, &shim->forks_failed);
	va_start(ap, arg);
	ptid = va_arg(ap, void *);
	tls = va_arg(ap, void *);
	ctid = va_arg(ap, void *);
	va_end(ap);
	*s = (struct start){ fn, arg };
	return real_clone(started, s, flags, s, ptid, tls, ctid);
}

pid_t
fork(void)
{
	if (shim->fork_error != 0)
		return fails(shim->fork_error, &shim->forks_failed);
	return real_fork();
}

/* Runs in children too, and before libc is ready, so it uses nothing of libc. */
long
syscall(long n, ...)
{
	long a[6], r;
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	/* Without it rqd has no cgroups, and calls our clone(). */
	if (n == SYS_clone3) {
		errno = ENOSYS;
		return -1;
	}
#ifdef __x86_64__
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a[0]), "S"(a[1]), "d"(a[2]),
	    "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
	    "r"(x5) : "memory");
	r = x0;
#endif
	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* The disk has room for half of the bytes, and then for none. */
ssize_t
write(int fd, const void *p, size_t n)
{
	if (fd != 2 || shim->disk_full == 0)
		return syscall(SYS_write, fd, p, n);
	if (shim->disk_full == 1 && n > 1) {
		shim->disk_full = 2;
		return syscall(SYS_write, fd, p, n / 2);
	}
	return fails(ENOSPC, &shim->writes_failed);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && id == CLOCK_REALTIME)
		ts->tv_sec += shim->clock_offset;
	else if (rc == 0 && id == CLOCK_MONOTONIC)
		ts->tv_sec += shim->mono_offset;
	return rc;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec ts;

	(void)tz;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret != NULL)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}
