/*
 * Tests of scripts when a command is denied, or a key has a wrong type: the same
 * questions for each path through the scripts of a kind.
 */
#pragma once

#include "rig.h"

/* A path through the scripts: the state before it, and the call. */
struct fault_path {
	const char	*name;
	void		(*setup)(void);
	void		(*run)(void);
	bool		 finishes;	/* messages in flight are meant to go */
};

struct faults {
	struct rig	*rig;
	const struct fault_path	*paths;
	size_t		 npaths;
	const char	*const *commands;	/* denied in turn */
	size_t		 ncommands;
	enum key	 last;			/* keys up to this one get wrong types */
	/* Makes Redis empty and calls the path's setup(); the end forgets what that took. */
	void	(*begin)(const struct fault_path *);
	void	(*end)(void);
	/* Fails the test, naming the path and the fault. */
	void	(*nothing_lost)(const struct fault_path *, const char *fault);
	/* The fault is over, and the call came again: works all off; nothing may be left. */
	void	(*recover)(const struct fault_path *, const char *fault);
	/* How many messages are anywhere; NULL: not counted. */
	int	(*copies)(void);
	/* Whether a call that was refused may have changed something. */
	bool	(*may_change)(const struct fault_path *, const char *command);
	/* Whether the key may have the type of a string, list, hash, zset (0 to 3). */
	bool	(*fits)(enum key, size_t type);
};

/* Lets all leases end and all retries fall due. */
void	faults_expire_all(struct rig *);
/* Puts all dead letters back by this script. */
void	faults_revive(struct rig *, const char *script, const char *keys);
/*
 * Delivers and acknowledges messages until there are none and this key is empty; then sweeps
 * what is old.  And fails the test if Redis has any key left.
 */
void	faults_work_off(struct rig *, const struct fault_path *, const char *fault, enum key);
void	faults_nothing_left(struct rig *, const struct fault_path *, const char *fault);

/* Each command denied on each path, twice; at least so many calls must be refused. */
void	faults_denied(const struct faults *, int least);
/*
 * A call that is refused has changed nothing, and its error names the command.  When it
 * comes again, no message becomes two: the third finds what the second found.
 */
void	faults_refused_whole(const struct faults *);
/* Each absent key with each wrong type, on each path. */
void	faults_wrong_types(const struct faults *);
