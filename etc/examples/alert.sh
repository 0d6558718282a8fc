#!/bin/sh
# Mails announcements of dead letters (on_dead): one mail for many of them.
#
#	queue "orders" {
#	    command = {"/usr/local/bin/ship-order"}
#	    user    = "orders"
#	    on_dead = "push:alerts"
#	}
#	queue "alerts" {
#	    command    = {"/usr/local/bin/alert.sh"}
#	    user       = "mail"
#	    batch      = 500
#	    batch_wait = 5m		# the first one waits for others
#	    lease      = 15m		# at least three times batch_wait
#	    framing    = "raw"		# an announcement is a line
#	    leftovers  = "keep"		# exim delivers in the background
#	}
#
# MAILTO	who gets it (root)
# SENDMAIL	the program that takes it (/usr/sbin/sendmail)

set -u

# Two lines for each: the last line of its error, and the command that shows all.
report=$(jq -er '
    def line: gsub("[[:cntrl:]]"; " ");
    if .letter then
        "\(.queue) \(.id), \(.reason): \(.answer // .error // "" | rtrimstr("\n") | split("\n") | last // "")",
        @sh "    rqctl dead show \(.queue) \(.letter)"
    else error("not an announcement of a dead letter") end | line') ||
    case $? in [1245]) report= ;; *) exit ;; esac	# another status: jq is missing or was killed
[ -n "$report" ] || exit 65

"${SENDMAIL:-/usr/sbin/sendmail}" -oi -t <<MAIL
To: ${MAILTO:-root}
Subject: dead letters: ${RQD_BATCH:-1}
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

$report
MAIL
