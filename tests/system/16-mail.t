#!/bin/sh
# A handler of an ordinary user sends mail under the shipped unit.  The mail servers are
# those of Debian: Postfix, whose postdrop is setgid, and exim, which is setuid.  Their
# packages are downloaded by apt, and installed in the test's own machine only.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

command -v apt-get >/dev/null || skip_all 'no apt-get'
command -v jq >/dev/null || skip_all 'no jq'
DEBS=$BUILDDIR/tests/mail
# Downloads a package and its missing dependencies, once for all runs.
fetch() {	# PACKAGE
	ls "$DEBS/$1/"*.deb >/dev/null 2>&1 && return
	mkdir -p "$DEBS/$1/partial"
	apt-get -q -y --no-install-recommends --download-only -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
	    -o Dir::Cache::archives="$DEBS/$1" install "$1" >"$T/apt.out" 2>&1
}
for p in postfix exim4-daemon-light; do
	dpkg -s "$p" >/dev/null 2>&1 && skip_all "this machine has a mail server of its own: $p"
	fetch "$p" || skip_all "$p cannot be downloaded: $(tail -n 1 "$T/apt.out")"
done

machine_boot
machine_redis

m useradd -m alice
m useradd -m bob
mkdir -p "$R/usr/local/bin"
cp "$SRCDIR/etc/examples/mail.sh" "$R/usr/local/bin/"
cat >"$R$etc/rqd.conf" <<'C'
queue "mail" {
	command = {"/usr/local/bin/mail.sh"}
	user = "alice"
	max_attempts = 1
	leftovers = "keep"
}
C
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'the service starts'

install_mail() {	# PACKAGE, debconf's answers on stdin
	$IN debconf-set-selections
	mkdir -p "$R/root/$1" && cp "$DEBS/$1/"*.deb "$R/root/$1/"
	m sh -c "DEBIAN_FRONTEND=noninteractive dpkg -i /root/$1/*.deb" >"$T/$1.out" 2>&1
	is $? 0 "$1 is installed" || note "$(tail -20 "$T/$1.out")"
}

send() {	# NAME
	mr lpush mail "{\"id\":\"$1\",\"to\":\"bob@rqdhost\",\"subject\":\"By $1\",\"text\":\"How are you?\"}" >/dev/null
	wait_ok 20 "journal | grep -q 'event=acked queue=mail id=$1 '" "$1 takes a mail from the handler"
	wait_ok 30 "inside /var/mail/bob | grep -q '^Subject: By $1'" "the mail by $1 is in the mailbox"
	like "$(inside /var/mail/bob | sed -n "/^Subject: By $1/q;p")" '^From alice@' "the mail by $1 is from the user of the queue"
}

# -- Postfix -------------------------------------------------------------------------
install_mail postfix <<'D'
postfix postfix/main_mailer_type select Local only
postfix postfix/mailname string rqdhost
D
m systemctl start postfix
is "$(m stat -c '%A %G' /usr/sbin/postdrop)" '-r-xr-sr-x postdrop' 'postdrop is setgid'
send postfix
m systemctl stop postfix@-.service postfix.service
mr lpush mail '{"id":"later","to":"bob@rqdhost","subject":"While it is down","text":"."}' >/dev/null
wait_ok 20 "journal | grep -q 'event=acked queue=mail id=later '" 'postdrop takes the mail while Postfix is down'
is "$(m find /var/spool/postfix/maildrop -type f -user alice | wc -l)" 1 'that mail is in the maildrop of Postfix'
m dpkg --purge postfix >"$T/purge.out" 2>&1
m rm -f /var/mail/bob

# -- exim ----------------------------------------------------------------------------
install_mail exim4-daemon-light <<'D'
exim4-config exim4/dc_eximconfig_configtype select local delivery only; not on a network
exim4-config exim4/dc_other_hostnames string rqdhost
exim4-config exim4/mailname string rqdhost
D
like "$(m stat -L -c '%A %U' /usr/sbin/exim4)" '^-rws.* root' 'exim is setuid'
# exim delivers in the background after the handler has ended; leftovers = "keep" allows that.
for i in 1 2 3 4 5; do send "exim-$i"; done
wait_for 30 '[ "$(m exim4 -bpc)" = 0 ]'
is "$(m exim4 -bpc)" 0 "no mail is left in exim's queue"
