/*
 * Counts the calls of each function of a program that was built with
 * -finstrument-functions, for each of its processes.  Preloaded; the counts are
 * in the file that WAY_FILE names, which bench/way.py reads while the program
 * runs.  A process that shares its parent's memory, as a child does before it
 * executes its command, has a row of its own, because each call asks who calls.
 */
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	PROCESSES = 512,
	FUNCTIONS = 4096	/* a power of two */
};

/* What the file holds; bench/way.py has the same. */
struct process {
	uint64_t pid;		/* 0: free */
	struct {
		uint64_t address;	/* in the file of the program; 0: free */
		uint64_t calls;
	} functions[FUNCTIONS];
};

#define SILENT __attribute__((no_instrument_function))

static struct process *processes;
static uintptr_t base;

void __cyg_profile_func_enter(void *, void *) SILENT;
void __cyg_profile_func_exit(void *, void *) SILENT;

/* The first object is the program itself. */
static int SILENT
find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	return 1;
}

static void __attribute__((constructor)) SILENT
map_file(void)
{
	const char *path = getenv("WAY_FILE");
	size_t size = sizeof(*processes) * PROCESSES;
	int fd;

	if (path == NULL)
		return;
	dl_iterate_phdr(find_base, NULL);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd == -1 || ftruncate(fd, (off_t)size) != 0)
		abort();
	processes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (processes == MAP_FAILED)
		abort();
	close(fd);
}

static struct process *SILENT
find_process(void)
{
	uint64_t pid = (uint64_t)syscall(SYS_getpid);

	for (int i = 0; i < PROCESSES; i++) {
		uint64_t none = 0;

		if (processes[i].pid == pid)
			return &processes[i];
		if (processes[i].pid == 0 &&
		    __atomic_compare_exchange_n(&processes[i].pid, &none, pid,
		    0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return &processes[i];
	}
	return NULL;
}

void
__cyg_profile_func_enter(void *function, void *caller)
{
	uint64_t address = (uintptr_t)function - base;
	struct process *p;
	size_t i;

	(void)caller;
	if (processes == NULL || (p = find_process()) == NULL)
		return;
	i = (address >> 4) % FUNCTIONS;
	while (p->functions[i].address != 0 && p->functions[i].address != address)
		i = (i + 1) % FUNCTIONS;
	p->functions[i].address = address;
	p->functions[i].calls++;
}

void
__cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}
