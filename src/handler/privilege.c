/*
 * Gives up privileges.
 *
 * The filter of system calls (seccomp) lists the forbidden ones, because a C library, a
 * name service or OpenSSL may need any other.  It forbids the calls that would help an
 * attacker: to make processes, to execute programs, to become other users, to read other
 * processes' memory or the kernel's.  If rqd was built without libseccomp, there is no filter.
 */
#include <config.h>

#include "handler/privilege.h"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

bool
privilege_held(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const uint32_t both = 1U << CAP_SETUID | 1U << CAP_SETGID;

	if (geteuid() == 0)
		return true;
	return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & both) == both;
}

bool
privilege_user(uid_t *uid, gid_t *gid)
{
	const struct passwd *pw = getpwnam(PRIVILEGE_USER);

	if (pw == NULL || pw->pw_uid == 0)
		return false;
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return true;
}

int
privilege_limit(uint32_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, data) == -1)
		return -1;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective = i == 0 ? data[i].permitted & effective : 0;
		data[i].permitted = effective != 0 ? data[i].permitted : 0;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &head, data);
}

int
privilege_drop(char **cause)
{
	uid_t u;
	gid_t g;

	if (!privilege_user(&u, &g))
		return util_cause(cause, "there is no user " PRIVILEGE_USER);
	/* Keep its own groups: a socket of Redis may be open only to its group. */
	if (initgroups(PRIVILEGE_USER, g) == -1 ||
	    setresgid(g, g, g) == -1 || setresuid(u, u, u) == -1 || privilege_limit(0) == -1)
		return util_cause(cause, "cannot become user " PRIVILEGE_USER ": %s; start rqd as "
		    "the user that handlers are to run as", strerror(errno));
	return 0;
}

/* -- the filter -------------------------------------------------------------------------- */

#ifdef HAVE_SECCOMP

static const int forbidden[] = {
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork),
	SCMP_SYS(process_vm_readv), SCMP_SYS(modify_ldt),
	SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd), SCMP_SYS(kcmp),
#ifndef RQD_SANITIZERS		/* a leak checker traces the process at exit */
	SCMP_SYS(ptrace),
#endif
	SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid),
	SCMP_SYS(setresuid), SCMP_SYS(setresgid), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid),
	SCMP_SYS(setgroups), SCMP_SYS(capset),
	SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot),
	SCMP_SYS(fsopen), SCMP_SYS(fspick), SCMP_SYS(open_tree), SCMP_SYS(move_mount),
	SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(open_by_handle_at),
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon),
	SCMP_SYS(swapoff), SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
	SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl), SCMP_SYS(io_uring_setup),
	SCMP_SYS(mknod), SCMP_SYS(mknodat), SCMP_SYS(personality), SCMP_SYS(acct),
	SCMP_SYS(quotactl), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(syslog),
};

/* These type text at the terminal that rqd was started from: root's shell would read it. */
static const uint64_t typing[] = { TIOCSTI, TIOCLINUX };

#ifdef __s390__
#define CLONE_FLAGS	1
#else
#define CLONE_FLAGS	0
#endif

#endif

/*
 * Installs the filter.  A call that this machine does not have is no error.  No processes, only
 * threads: no filter sees the flags of clone3(), so it fails; then a C library takes clone().
 */
static int
filter(void)
{
	int r = 0;
#ifdef HAVE_SECCOMP
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	r = ctx != NULL ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(forbidden); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), forbidden[i], 0);
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
#ifndef RQD_SANITIZERS		/* a leak checker makes a process at exit */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
		    SCMP_CMP(CLONE_FLAGS, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
#endif
	/* Sockets that lead into the kernel.  Name services ask NETLINK_ROUTE for addresses. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
		    SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_VSOCK));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 2,
		    SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_NETLINK),
		    SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE, 0));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(typing); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
		    SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, typing[i]));
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
#endif
	/* A kernel without seccomp: the other measures remain. */
	return r == -EINVAL || r == -ENOSYS ? 0 : r;
}

/* The process is not dumpable, so only root can trace it.  Leak checkers could not. */
#ifdef RQD_SANITIZERS
#define DUMPABLE	1
#else
#define DUMPABLE	0
#endif

void
privilege_hide(void)
{
	(void)prctl(PR_SET_DUMPABLE, DUMPABLE);
}

int
privilege_seal(char **cause)
{
	int r;

	privilege_hide();	/* a change of ids may have made it dumpable */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return util_cause(cause, "cannot give up privileges: %s", strerror(errno));
	if ((r = filter()) != 0)
		return util_cause(cause, "cannot filter system calls: %s", strerror(-r));
	return 0;
}
