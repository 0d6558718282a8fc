/*
 * rqctl dead import: each line of standard input is a letter as dead export writes it.  A
 * letter keeps its number unless QDEAD has had newer ones.  Import skips a letter that
 * exists with its number; one that had to get a new number is imported again by a repetition.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/shard_keys.h"
#include "rqctl/ask.h"
#include "rqctl/letters.h"

struct import {
	struct ctl	*ctl;
	int64_t		 line;
	int64_t		 imported;
	int64_t		 present;	/* skipped: QDEAD has them already */
};

/* Sends one letter to the shard of its id, or of its number: a repeated import selects the same. */
static int
import_letter(struct import *m, const json_t *letter)
{
	/* The fields of QDEAD that a letter may have. */
	static const char *const fields[] = {
		"id", "message", "reason", "attempts", "status", "error", "answer", "host",
		"cpu", "maxrss", "saved"
	};
	struct target *t = &m->ctl->target;
	const char *number = json_string_value(json_object_get(letter, "letter"));
	const char *id = json_string_value(json_object_get(letter, "id"));
	struct words w = { .n = 0 };
	const json_t *v;
	char *text;
	size_t len;
	int64_t n;

	id = id != NULL ? id : number != NULL ? number : "";
	if (t->cfg != NULL && t->cfg->shards > 1)
		target_select(t, shard_keys_part(id, strlen(id), (unsigned)t->cfg->shards));
	ask_add(&w, "%s %s", t->keys.name[KEY_DEAD],
	    number != NULL && select_is_letter(number) ? number : "");
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		v = json_object_get(letter, fields[i]);
		if (json_is_integer(v))
			ask_add(&w, "%s %lld", fields[i], (long long)json_integer_value(v));
		else if (json_is_real(v))
			ask_add(&w, "%s %f", fields[i], json_real_value(v));
		else if ((text = json_get_bytes(letter, fields[i], &len)) != NULL) {
			ask_add(&w, "%s", fields[i]);
			words_own(&w, text, len);
		} else if (strcmp(fields[i], "message") == 0) {
			words_done(&w);
			return ctl_error(m->ctl, EX_DATAERR, "line %lld: not a dead letter: it has "
			    "no message", (long long)m->line);
		}
	}
	n = ask_number(ask_script_words(m->ctl, "dead_import", 1, &w));
	m->imported += n == 1;
	m->present += n == 0;
	return n == -1 ? -1 : 0;
}

static void
import_all(struct import *m)
{
	char *line = NULL;
	size_t room = 0;
	json_t *letter;
	ssize_t n;
	int rc = 0;

	ctl_catch_signals();
	while (rc == 0 && !ctl_interrupted() && (n = getline(&line, &room, stdin)) > 0) {
		m->line++;
		if (line[strspn(line, " \t\r\n")] == '\0')
			continue;
		letter = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
		rc = json_is_object(letter) ? import_letter(m, letter) :
		    ctl_error(m->ctl, EX_DATAERR, "line %lld: not a JSON object: dead import reads "
		    "what dead export writes", (long long)m->line);
		json_decref(letter);
	}
	if (ctl_interrupted())
		ctl_error(m->ctl, EX_INTERRUPTED, "interrupted");
	else if (ferror(stdin))
		ctl_error(m->ctl, EX_IOERR, "standard input: %s", strerror(errno));
	free(line);
}

void
dead_import(struct ctl *c)
{
	struct import m = { .ctl = c };
	char n[OUT_NUMBER_MAX], there[OUT_NUMBER_MAX];

	if (ctl_connect(c) == -1)
		return;
	import_all(&m);
	ctl_result(c,
	    json_set(json_object(), "queue:s imported:i present:i complete:t", c->target.name,
		m.imported, m.present, c->status == 0),
	    "imported %s dead letter%s of %s%s%s%s", out_number(m.imported, n),
	    m.imported == 1 ? "" : "s", c->target.name, m.present > 0 ? "; skipped " : "",
	    m.present > 0 ? out_number(m.present, there) : "",
	    m.present > 0 ? " that existed" : "");
}
