/* rqctl resume: deletes QPAUSED. */
#include "rqctl/ask.h"

static void
resume_run(struct ctl *c)
{
	struct target *t;
	size_t n, i;
	int64_t gone = 0;

	if ((t = targets_find(c, &n)) == NULL)
		return;
	for (i = 0; i < n && gone != -1; i++) {
		gone = target_count(c, &t[i], "DEL", KEY_PAUSED);
		if (gone > 0)
			ctl_result(c, json_set(json_object(), "queue:s done:s", t[i].name,
			    "resumed"), "resumed %s", t[i].name);
		else if (gone == 0)
			ctl_error(c, EX_NOTHING, "%s is not paused", t[i].name);
	}
	targets_free(t, n);
}

const struct verb verb_resume = {
	.name = "resume",
	.args = "QUEUE...",
	.help = "end a pause",
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES | VERB_LINES,
	.run = resume_run,
};
