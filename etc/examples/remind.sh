#!/bin/sh
# Reminds people, each at an interval of their own, whenever a key expires.  The
# message is the name of the key, remind:USER:TYPE.  To begin with:
#
#	redis-cli HSET remind:every 17 3600
#	redis-cli SET remind:17:digest 1 EX 3600
#
# After each reminder the key is set again; a user without an interval gets no
# reminder.  If this machine dies between the two, a reminder is sent twice.
#
#	queue "remind" {
#	    kind          = "expired"
#	    match         = "remind:*:*"
#	    notifications = "set"
#	    skew          = 1m
#	    command       = {"/usr/local/bin/remind.sh"}
#	    user          = "app"
#	}
#
# SEND		the program that reminds, with USER and TYPE (/usr/local/bin/send-reminder)
# REDISCLI_OPTIONS	options of redis-cli, such as "-h HOST -p PORT" (none)

set -u

# shellcheck disable=SC2086
redis() { redis-cli ${REDISCLI_OPTIONS-} "$@"; }

key=$(cat) || exit
case $key in remind:*:*) ;; *) exit 65 ;; esac
rest=${key#remind:}
user=${rest%%:*}
type=${rest#*:}
case $user in '' | -* | *[!A-Za-z0-9_-]*) exit 65 ;; esac
case $type in '' | -* | *[!A-Za-z0-9_-]*) exit 65 ;; esac

# An error reply is no number either.
every=$(redis HGET remind:every "$user") || exit 75
case $every in
'') exit 0 ;;
*[!0-9]*) echo "interval of $user: $every" >&2; exit 75 ;;
esac
"${SEND:-/usr/local/bin/send-reminder}" "$user" "$type" || exit

# NX: if another client has set the key meanwhile, keep its value.
answer=$(redis SET "$key" 1 EX "$every" NX) || exit 75
case $answer in
OK | '') ;;
*) echo "$answer" >&2; exit 75 ;;
esac
