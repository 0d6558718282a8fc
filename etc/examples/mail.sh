#!/bin/sh
# Sends a mail.  The message:
#
#	{"id":"m-1","to":"a@example.org","subject":"Hello","text":"How are you?"}
#
# A mail cannot be unsent: if this machine dies between sendmail and the
# acknowledgement, the mail is sent twice.
#
#	queue "mail" {
#	    command   = {"/usr/local/bin/mail.sh"}
#	    user      = "mail"
#	    leftovers = "keep"		# exim delivers in the background
#	}
#
# SENDMAIL	the program that takes it (/usr/sbin/sendmail)

set -u

# One jq for all fields; @sh quotes them so that eval is safe.
fields=$(jq -rse '
    if length == 1 and (.[0] | [.to, .subject, .text] | all(type == "string"))
    then .[0] | @sh "to=\(.to) subject=\(.subject) text=\(.text)"
    else error("a mail has to, subject and text, which are strings") end') ||
    case $? in [1245]) exit 65 ;; *) exit ;; esac	# another status: jq is missing or was killed
to='' subject='' text=''
eval "$fields"

# A newline in a header would begin another one.
case $to$subject in
*[[:cntrl:]]*)
	echo 'control character in "to" or "subject"' >&2
	exit 65
	;;
esac
case $subject in
*[!\ -~]*)
	subject=$(printf %s "$subject" | base64 -w 0) || exit
	subject="=?UTF-8?B?$subject?="
	;;
esac

"${SENDMAIL:-/usr/sbin/sendmail}" -oi -t <<MAIL
To: $to
Subject: $subject
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

$text
MAIL
status=$?
case $status in
65 | 67 | 68) exit 65 ;;		# bad address, no such user, no such host
*) exit "$status" ;;
esac
