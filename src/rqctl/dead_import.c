/*
 * rqctl dead import: the inverse of dead export.
 *
 * Each line of standard input is a letter as export writes it.  A letter keeps its number
 * unless QDEAD has had newer ones.  A letter whose number exists is skipped, so an
 * interrupted import can be repeated.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/out.h"
#include "rqctl/select.h"
#include "status/json_bytes.h"

struct import {
	struct ctl	*ctl;
	int64_t		 line;
	int64_t		 imported;
	int64_t		 present;	/* there already */
};

/* The fields of QDEAD that a letter may have. */
static const char *const fields[] = {
	"id", "message", "reason", "attempts", "status", "error", "answer", "host"
};

/* Adds the fields that the object has; whether a message is among them. */
static bool
add_fields(struct words *w, const json_t *letter)
{
	bool message = false;
	const json_t *v;
	char *text;
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(fields); i++) {
		v = json_object_get(letter, fields[i]);
		if (json_is_integer(v))
			ask_add(w, "%s %lld", fields[i], (long long)json_integer_value(v));
		else if ((text = json_get_bytes(letter, fields[i], &len)) != NULL) {
			ask_add(w, "%s", fields[i]);
			words_own(w, text, len);
		} else
			continue;
		message = message || strcmp(fields[i], "message") == 0;
	}
	return message;
}

static int
import_letter(struct import *m, const json_t *letter)
{
	const char *number = json_string_value(json_object_get(letter, "letter"));
	struct words w = { .n = 0 };
	int64_t n;

	ask_add(&w, "%s %s", m->ctl->target.keys.name[KEY_DEAD],
	    number != NULL && select_is_letter(number) ? number : "");
	if (!add_fields(&w, letter)) {
		words_done(&w);
		return ctl_error(m->ctl, EX_DATAERR,
		    "line %lld: not a dead letter: it has no message", (long long)m->line);
	}
	n = ask_number(ask_script_words(m->ctl, "dead_import", 1, &w));
	m->imported += n == 1;
	m->present += n == 0;
	return n == -1 ? -1 : 0;
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
		ctl_error(m->ctl, EX_DATAERR, "line %lld: not a JSON object: dead import reads "
		    "what dead export writes", (long long)m->line);
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

void
dead_import(struct ctl *c)
{
	struct import m = { .ctl = c };
	char n[OUT_NUMBER_MAX], there[OUT_NUMBER_MAX];

	if (ctl_connect(c) == -1)
		return;
	import_all(&m);
	ctl_result(c,
	    out_set(json_object(), "queue:s imported:i present:i complete:t", c->target.name,
		m.imported, m.present, c->status == 0),
	    "imported %s dead letter%s of %s%s%s%s", out_number(m.imported, n),
	    m.imported == 1 ? "" : "s", c->target.name, m.present > 0 ? "; skipped " : "",
	    m.present > 0 ? out_number(m.present, there) : "",
	    m.present > 0 ? " that existed" : "");
}
