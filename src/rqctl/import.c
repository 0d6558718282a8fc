/*
 * rqctl dead import: the inverse of dead export.
 *
 * Each line of standard input is a letter as export writes it.  A letter keeps its number
 * where QDEAD still takes it, so that an import that was interrupted can be repeated: a
 * letter whose number is there is passed over.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/select.h"
#include "status/json_bytes.h"

struct import {
	struct ctl	*ctl;
	struct target	 target;
	int64_t		 line;
	int64_t		 imported;
	int64_t		 present;	/* there already */
};

/* The fields of QDEAD that a letter may have. */
static const char *const fields[] = {
	"id", "message", "reason", "attempts", "status", "error", "answer", "host"
};

/* Adds the fields that the object has; attempts is a number there. */
static int
add_fields(struct words *w, json_t *letter, char **owned)
{
	const json_t *v;
	size_t i, len;
	int n = 0;

	for (i = 0; i < ARRAY_LEN(fields); i++) {
		v = json_object_get(letter, fields[i]);
		len = 0;
		if (json_is_integer(v)) {
			owned[i] = xasprintf("%lld", (long long)json_integer_value(v));
			len = strlen(owned[i]);
		} else if ((owned[i] = json_get_bytes(letter, fields[i], &len)) == NULL) {
			continue;
		}
		words_add(w, fields[i]);
		words_mem(w, owned[i], len);
		n++;
	}
	return n;
}

static int
import_letter(struct import *m, json_t *letter)
{
	const char *number = json_string_value(json_object_get(letter, "letter"));
	char *owned[ARRAY_LEN(fields)] = { NULL };
	struct redisReply *reply = NULL;
	struct words w = { 0 };
	size_t i;

	words_add(&w, m->target.keys.name[KEY_DEAD]);
	words_add(&w, number != NULL && select_is_letter(number) ? number : "");
	if (add_fields(&w, letter, owned) == 0 || owned[1] == NULL)
		ctl_error(m->ctl, EX_DATAERR, "line %lld: this is no dead letter: it has no message",
		    (long long)m->line);
	else if ((reply = ask_script(m->ctl, "dead_import", 1, &w)) != NULL) {
		m->imported += reply_int(reply, 0) == 1;
		m->present += reply_int(reply, 0) == 0;
	}
	for (i = 0; i < ARRAY_LEN(fields); i++)
		free(owned[i]);
	client_reply_free(reply);
	words_done(&w);
	return m->ctl->status == 0 ? 0 : -1;
}

static int
import_line(struct import *m, const char *line, size_t len)
{
	json_error_t error;
	json_t *letter = json_loadb(line, len, JSON_ALLOW_NUL, &error);
	int rc = -1;

	if (json_is_object(letter))
		rc = import_letter(m, letter);
	else
		ctl_error(m->ctl, EX_DATAERR, "line %lld: this is no JSON object: write what "
		    "\"rqctl dead export\" writes", (long long)m->line);
	json_decref(letter);
	return rc;
}

static void
import_all(struct import *m)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	ctl_catch_signals();
	while (!ctl_interrupted() && (n = getline(&line, &room, stdin)) > 0) {
		m->line++;
		if (line[strspn(line, " \t\r\n")] == '\0')
			continue;
		if (import_line(m, line, (size_t)n) == -1)
			break;
	}
	if (ctl_interrupted())
		ctl_error(m->ctl, EX_INTERRUPTED, "interrupted");
	else if (ferror(stdin))
		ctl_error(m->ctl, EX_IOERR, "standard input: %s", strerror(errno));
	free(line);
}

static void
tell(const struct import *m)
{
	char n[OUT_NUMBER_MAX], there[OUT_NUMBER_MAX];
	json_t *o;

	if (!ctl_given(m->ctl, OPT_JSON)) {
		printf("imported %s dead letter%s of %s", out_number(m->imported, n),
		    m->imported == 1 ? "" : "s", m->target.name);
		if (m->present > 0)
			printf("; %s were there", out_number(m->present, there));
		putchar('\n');
		return;
	}
	o = json_object();
	out_set_bytes(o, "queue", m->target.name, strlen(m->target.name));
	json_object_set_new(o, "imported", json_integer(m->imported));
	json_object_set_new(o, "present", json_integer(m->present));
	json_object_set_new(o, "complete", json_boolean(m->ctl->status == 0));
	out_json(o);
}

void
dead_import(struct ctl *c)
{
	struct import m = { .ctl = c };

	if (ctl_keeping_target(c, c->args.words[0], "dead", &m.target) == -1)
		return;
	if (ctl_connect(c) == 0) {
		import_all(&m);
		tell(&m);
	}
	ctl_target_done(&m.target);
}
