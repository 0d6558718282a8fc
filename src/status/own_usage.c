/*
 * Figures from /proc/self and getrusage(2).
 */
#include "status/own_usage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static double
seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / (double)SEC;
}

static void
look_memory(struct own_usage *p)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size, resident;

	if (f == NULL)
		return;
	if (fscanf(f, "%" SCNu64 " %" SCNu64, &size, &resident) == 2) {
		p->virtual = (double)(size * page);
		p->resident = (double)(resident * page);
	}
	fclose(f);
}

/* Since Linux 6.2 the directory's size is the number; before, they are counted. */
static uint64_t
count_fds(void)
{
	struct stat st;
	uint64_t n = 0;
	DIR *dir;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	if ((dir = opendir("/proc/self/fd")) == NULL)
		return 0;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n >= 3 ? n - 3 : 0;	/* . and .. and the directory itself */
}

void
own_usage_look(struct own_usage *p)
{
	struct rusage usage;
	struct rlimit limit;

	*p = (struct own_usage){ .cpu = 0 };
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		p->cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		p->max_fds = (double)limit.rlim_cur;
	look_memory(p);
	p->fds = (double)count_fds();
}
