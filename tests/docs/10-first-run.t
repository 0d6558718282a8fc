#!/bin/sh
# The two commands of the README on a terminal, with colours: ./demo, and ./check
# until it builds.  As whoever runs this test; and, where that is root, as an
# ordinary user who has sudo.  dpkg-query and apt-get are stand-ins that lack one
# package: what is asked of them is seen, and nothing is installed.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v script >/dev/null || skip_all 'no script(1)'

# The test needs an ordinary user with sudo.  It writes that user into copies of the
# machine's files, in a name space of its own.
USER_MODE=no WHY='not run by root'
if [ "$(id -u)" -eq 0 ] && [ -z "$RQD_PRIVATE" ]; then
	if unshare --mount true 2>/dev/null; then
		cleanup
		trap - EXIT
		RQD_PRIVATE=yes
		export RQD_PRIVATE
		exec unshare --mount sh "$0"
	fi
	WHY='no name spaces here'
fi

a_user_with_sudo() {
	[ "$RQD_PRIVATE" = yes ] || return
	command -v sudo >/dev/null || { WHY='no sudo'; return; }
	mount --make-rprivate / 2>/dev/null || { WHY='mounts cannot be made private here'; return; }
	mkdir "$T/fs" && mount -t tmpfs tmpfs "$T/fs" || { WHY='no tmpfs'; return; }
	mkdir "$T/fs/up" "$T/fs/work"
	# Services are refused by a file there.
	mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$T/fs/up,workdir=$T/fs/work" /usr/sbin \
	    2>/dev/null || { WHY='no overlay file system'; return; }
	rm -f /usr/sbin/policy-rc.d
	for f in passwd group shadow sudoers; do
		cp -p "/etc/$f" "$T/fs/$f"
	done
	echo "tester:x:41234:41234::$T/home:/bin/sh" >>"$T/fs/passwd"
	echo 'tester:x:41234:' >>"$T/fs/group"
	echo 'tester:*:19000:0:99999:7:::' >>"$T/fs/shadow"
	chmod 640 "$T/fs/sudoers"
	{
		echo 'Defaults !secure_path, env_keep += "APT_LOG"'
		echo 'root ALL=(ALL:ALL) ALL'
		echo 'tester ALL=(ALL:ALL) NOPASSWD: ALL'
	} >"$T/fs/sudoers"
	chmod 440 "$T/fs/sudoers"
	for f in passwd group shadow sudoers; do
		mount --bind "$T/fs/$f" "/etc/$f" || { WHY="/etc/$f cannot be replaced"; return; }
	done
	mkdir "$T/home" && chown 41234:41234 "$T/home"
	USER_MODE=yes
}

# -- the stand-ins ---------------------------------------------------------------

mkdir "$T/bin"
cat >"$T/bin/dpkg-query" <<'H'
#!/bin/sh
for last in "$@"; do :; done
[ "$last" != faketime ] || grep -qs 'install.* faketime' "$APT_LOG" || exit 1
printf installed
H
cat >"$T/bin/apt-get" <<'H'
#!/bin/sh
echo "uid=$(id -u) $*" >>"$APT_LOG"
[ ! -x /usr/sbin/policy-rc.d ] || echo 'services are refused' >>"$APT_LOG"
case " $* " in *' download '*) exit 1 ;; esac
exit 0
H
chmod 755 "$T/bin/dpkg-query" "$T/bin/apt-get"

# -- a terminal --------------------------------------------------------------------

# Runs a command on a terminal of its own, as the user of $AS_USER; the words are in
# $T/screen.  What is written to the terminal comes from standard input.
terminal() {	# COMMAND
	env --default-signal=INT,QUIT,HUP -u NO_COLOR PATH="$T/bin:$PATH" TERM=xterm APT_LOG="$T/apt.log" HOME="$T" $AS_USER \
	    script -qefc "$1" /dev/null >"$T/screen" 2>&1
}

words() { sed 's/\x1b\[[0-9;]*[mK]//g; s/\r*$//; s/.*\r//' "$T/screen"; }

demo() {	# WHOSE SOURCES PROGRAMS
	terminal "cd '$2' && BUILDDIR='$3' ./demo" </dev/null
	is $? 0 "$1: ./demo" || note "$(words)"
	like "$(words)" '^8/8 ' 'shows all its steps'
	like "$(words | grep -A 1 '^QUEUE .*HELD')" '^mails +[0-9]+ +[0-9]+/4 +[0-9]' 'shows how many are held'
	ok 'grep -q "$(printf "\033\[32m")acked" "$T/screen"' 'in colours'
	is "$(words | awk 'length($0) > 80')" '' 'in 80 columns'
	like "$(words)" '^reason +status' 'a dead letter'
	like "$(words)" '^exit status 0' 'and a clean end'
}

# Until ./check builds; then somebody presses ^C.
head_of_check() {	# WHOSE SOURCES
	rm -f "$T/apt.log"
	: >"$T/apt.log" && chmod 666 "$T/apt.log"
	: >"$T/screen"
	{
		wait_for 60 'words | grep -q "^== Build" || [ -e "$T/ended" ]'
		printf '\003'
		wait_for 20 '[ -e "$T/ended" ]'
	} | { terminal "cd '$2' && ./check"; echo $? >"$T/status"; : >"$T/ended"; }
	rm -f "$T/ended"
	like "$(words)" '^== What is needed' "$1: ./check begins" || note "$(words)"
	like "$(words)" '^installing: faketime$' 'says what it installs'
	like "$(cat "$T/apt.log")" '^uid=0 .* install -y --no-install-recommends faketime' 'and does so as root'
	like "$(cat "$T/apt.log")" '^services are refused' 'no service is started'
	ok '[ ! -e /usr/sbin/policy-rc.d ]' 'and nothing is left of that' || rm -f /usr/sbin/policy-rc.d
	like "$(words)" '^== Build, warnings are errors' 'then it builds'
	ok '[ "$(cat "$T/status")" -ne 0 ]' 'and ends at ^C'
}

sources() {	# FOLDER
	mkdir "$1"
	tar -C "$SRCDIR" --exclude=./build --exclude=./build-asan --exclude=./build-clang --exclude=./build-way --exclude=./.git -cf - . | tar -x -C "$1"
}

AS_USER=''
a_user_with_sudo
demo 'whoever runs this' "$SRCDIR" "$BUILDDIR"
# Its processes have this test's directory in their environment.
(cd "$SRCDIR" && env --default-signal=PIPE MARK="$T" BUILDDIR="$BUILDDIR" ./demo 2>/dev/null) | head -n 3 >"$T/head"
like "$(cat "$T/head")" '^1/8 ' './demo | head -n 3'
wait_ok 30 '[ -z "$(our_processes)" ]' 'leaves no process'
if [ "$USER_MODE" = yes ]; then
	sources "$T/src"
	head_of_check root "$T/src"
	rm -rf "$T/src"
	# Copies: what root has cloned may lie where nobody else can go.
	AS_USER='setpriv --reuid 41234 --regid 41234 --clear-groups'
	sources "$T/src"
	chown -R 41234:41234 "$T/src"
	mkdir "$T/programs"
	cp "$RQD" "$RQCTL" "$T/programs/"
	demo 'an ordinary user' "$T/src" "$T/programs"
	head_of_check 'an ordinary user with sudo' "$T/src"
	umount -l /usr/sbin /etc/passwd /etc/group /etc/shadow /etc/sudoers "$T/fs"
else
	skip "./check, and an ordinary user with sudo: $WHY"
fi
wait_ok 30 '[ -z "$(our_processes)" ]' 'no process is left'
