#!/bin/sh
# Books amounts into a file: a persistent handler in shell.  A message is one line,
# an account and an amount in cents: "alice 1250".
#
#	queue "ledger" {
#	    command     = {"/usr/local/bin/ledger.sh"}
#	    user        = "ledger"
#	    env         = {"LEDGER=/var/lib/ledger/book"}
#	    mode        = "persistent"
#	    framing     = "line"
#	    pipeline    = 4
#	}
#
# Standard output is for answers only.  Commands in the loop must not read the
# handler's standard input, where the next messages are, nor print there: "</dev/null
# >&2".  A shell reads a pipe byte by byte, so messages should be short.  Do everything
# that does not depend on the message before the loop.

set -u

# 0: done; 65: can never succeed; any other status: retry.  Its output is the
# reason, one line.
book() {	# ID MESSAGE
	account=${2%% *}
	cents=${2#"$account"}
	cents=${cents# }
	case $account in
	'' | *[!a-z0-9]*) echo 'no account'; return 65 ;;
	esac
	case $cents in
	'' | *[!0-9]*) echo 'no amount'; return 65 ;;
	esac
	# A failed redirection would end the shell, so it is in a subshell.
	(printf '%s %s %s\n' "$1" "$account" "$cents" >>"$LEDGER") 2>&1
}

# shellcheck disable=SC2034
while read -r n attempt length id && IFS= read -r message; do
	reason=$(book "$id" "$message" </dev/null)
	case $? in
	0)	echo "$n ok" ;;
	65)	echo "$n dead $reason" ;;
	*)	echo "$n retry - $reason" ;;
	esac
done
