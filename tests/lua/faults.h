/*
 * Tests of scripts when Redis denies a command, or a key has a wrong type.  Each kind has
 * a table of paths through its scripts, and each test goes through all of them.
 */
#pragma once

#include "rig.h"

/* A path through the scripts: the state before it, and the call. */
struct fault_path {
	const char	*name;
	void		(*setup)(void);
	void		(*run)(void);
	bool		 finishes;	/* the path settles messages, which then go */
};

struct faults {
	struct rig	*rig;
	const struct fault_path	*paths;
	size_t		 npaths;
	const char	*const *commands;	/* denied in turn */
	size_t		 ncommands;
	enum key	 last;			/* keys up to this one get wrong types */
	/*
	 * begin() empties Redis and calls the path's setup(); end() frees what setup()
	 * took.
	 */
	void	(*begin)(const struct fault_path *);
	void	(*end)(void);
	/* Fails the test if a message is lost; names the path and the fault. */
	void	(*nothing_lost)(const struct fault_path *, const char *fault);
	/*
	 * Called after the fault is over and the call was repeated: works off all
	 * messages.  Fails the test if a key is left.
	 */
	void	(*recover)(const struct fault_path *, const char *fault);
	/* The number of messages in all places; NULL: not counted. */
	int	(*copies)(void);
	/* Whether a call that was refused may have changed something. */
	bool	(*may_change)(const struct fault_path *, const char *command);
	/* Whether the key may have the type of a string, list, hash, zset (0 to 3). */
	bool	(*fits)(enum key, size_t type);
};

/* Lets all leases end and all retries fall due. */
void	faults_expire_all(struct rig *);
/* Retries all dead letters by this script. */
void	faults_revive(struct rig *, const char *script, const char *keys);
/*
 * faults_work_off() delivers and acks messages until there are none and this key is
 * empty, and then sweeps old fields. faults_nothing_left() fails the test if Redis has
 * any key left.
 */
void	faults_work_off(struct rig *, const struct fault_path *, const char *fault, enum key);
void	faults_nothing_left(struct rig *, const struct fault_path *, const char *fault);

/*
 * Denies each command on each path, and makes the call twice.  Redis must refuse more
 * calls than `least`.
 */
void	faults_denied(const struct faults *, int least);
/*
 * A refused call must change nothing, and its error must name the command.  Each call is
 * made three times, and must not multiply messages.
 */
void	faults_refused_whole(const struct faults *);
/* Gives each absent key each wrong type, on each path. */
void	faults_wrong_types(const struct faults *);
