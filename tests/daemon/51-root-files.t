#!/bin/sh
# rqd is started as root, and its log file, its HTTP socket and its password are in
# folders that only root may write to: the spawner opens them.  It opens no path that
# another user could redirect.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
command -v curl >/dev/null || skip_all 'no curl'
command -v setpriv >/dev/null || skip_all 'no setpriv'
EVIL=60374		# nobody else's

redis_start
mkdir -m 700 "$T/roots" "$T/hidden"
mkdir -m 755 "$T/theirs" && chown $EVIL "$T/theirs"
F=$T/roots/rqd.log
H=$T/roots/http.sock
handler work <<'H'
cat >>"$T/ran"
H
conf() {	# TARGET LISTEN
	cat <<C
redis { server = "unix:$SOCK" }
log { level = "debug" target = "$1" }
http { listen = "$2" }
queue "q" { command = {"$T/work"} user = "root" }
C
}
healthy() { [ "$(curl -s -o /dev/null -w '%{http_code}' --unix-socket "$1" http://localhost/healthz)" = 200 ]; }
count() { grep -acE -e "$1" "$2"; }

# The configuration, where others could lead root to another file.
conf stderr '' >"$T/roots/conf" && ln -s "$T/roots/conf" "$T/theirs/conf"
said=$("$RQD" -t -c "$T/theirs/conf" 2>&1)
is $? 78 'a configuration in a directory of another user is refused'
like "$said" "theirs belongs to user $EVIL, not to root" 'and says why'
"$RQD" -t -c "$T/roots/conf" >/dev/null 2>&1
is $? 0 'the file itself would do'
rm "$T/theirs/conf"

# As a version that ran as root has left it, with its socket.
echo 'an older record' >"$F" && chmod 640 "$F"
python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])' "$H" 2>/dev/null
conf "$F" "unix:$H" >"$T/text"
"$RQD" -tt -c "$T/text" >"$T/tt.out" 2>&1
is $? 0 'no warning' || note "$(cat "$T/tt.out")"
rqd_start <"$T/text"
wait_ok 30 'grep -q event=ready "$F"' 'the log is in a folder that only root may enter'
is "$(head -n 1 "$F")" 'an older record' 'and is appended to'
unlike "$(cat "$T/rqd.log")" 'keeps the old log target' 'nothing is missing'
wait_ok 30 'healthy "$H"' 'so is the HTTP socket, in the place of a dead one'
is "$(stat -c '%U %a' "$H") $(stat -c '%U %a' "$F")" 'root 660 root 640' 'both are for root alone'
is "$(stat -c %u "/proc/$PID")" "$(id -u "$MAIN_USER")" 'and the process that uses them is not root'

# -- logrotate -----------------------------------------------------------------------
mv "$F" "$F.1"
rqd_signal USR1
wait_for 30 '[ -e "$F" ]'
r lpush q one >/dev/null
wait_ok 30 'grep -q "event=acked queue=q" "$F"' 'after a rotation it writes to a new file'
is "$(stat -c '%U %a' "$F")" 'root 640' 'which is made as before'

# -- somebody else's ------------------------------------------------------------------
mv "$T/roots/rqd.log" "$T/roots/rqd.log.2"
ln -s "$T/hidden/target" "$F"
rqd_signal USR1
wait_ok 30 'grep -q "reason=log_failed" "$T/rqd.log"' 'a link in its place is not followed'
like "$(grep -a 'reason=log_failed' "$T/rqd.log")" 'is a symbolic link' 'standard error says why'
ok '[ ! -e "$T/hidden/target" ]' 'and nothing was made'
rm "$F"
rqd_signal USR1
wait_for 30 '[ -e "$F" ]'

conf "$T/theirs/rqd.log" "unix:$T/theirs/http.sock" >"$T/rqd.conf"
chmod 600 "$T/rqd.conf"
said=$("$RQD" -t -c "$T/rqd.conf" 2>&1)
like "$said" "rqd.conf:2: target .*/theirs belongs to user $EVIL, not to root, so others could" 'rqd -t warns of another user'"'"'s folder'
rqd_signal HUP
wait_ok 30 'grep -q "event=reloaded" "$F"' 'a reload'
wait_for 30 'grep -qa "keeps the old log target" "$F"'
like "$(grep -a 'keeps the old log target' "$F")" "theirs/rqd.log: Permission denied; as root rqd opens a log only in a directory that only root may write to: .*/theirs belongs to user $EVIL" \
    'does not take it for the log'
wait_ok 30 'grep -q "cannot listen on http.listen" "$F"' 'or for the socket'
like "$(grep -a 'cannot listen on http.listen' "$F")" "theirs/http.sock: Permission denied; as root rqd makes a socket only in .*/theirs belongs to user $EVIL" 'the log says why'
is "$(ls "$T/theirs")" '' 'nothing was made there'
wait_ok 30 '[ ! -e "$H" ]' 'the file of the old socket is gone'

# A folder in which others may make links on the way.
ln -s "$T/hidden" "$T/theirs/link"
conf "$T/theirs/link/rqd.log" "unix:$T/theirs/link/http.sock" >"$T/rqd.conf"
n=$(count event=reloaded "$F")
rqd_signal HUP
wait_for 30 '[ "$(count event=reloaded "$F")" -gt "$n" ]'
is "$(ls "$T/hidden")" '' 'nor where their link leads'

# Back: a reload that moves both.
conf "$T/roots/other.log" "unix:$T/roots/other.sock" >"$T/rqd.conf"
rqd_signal HUP
wait_ok 30 'grep -q event=reloaded "$T/roots/other.log"' 'a reload moves the log'
wait_ok 30 'healthy "$T/roots/other.sock"' 'and the socket'
rqd_kill9
H=$T/roots/other.sock
conf "$F" "unix:$H" >"$T/text"
rqd_start <"$T/text"
wait_ok 30 'healthy "$H"' 'another daemon takes its place'
rqd_stop
wait_ok 30 '[ ! -e "$H" ]' 'that ends removes the file of its socket'
like "$(tail -n 1 "$F")" 'event=stopped' 'and writes its last record'

# The spawner was asked for a socket that it could not make.
conf "$T/roots/rqd.log" "unix:$T/roots/none/http.sock" >"$T/text"
rqd_start nosocket <"$T/text"
start=$(msec)
rqd_stop nosocket
ok "[ $(($(msec) - start)) -lt $((3000 * SLOW)) ]" "a daemon without its socket stops at once ($(($(msec) - start)) ms)"

# -- a password ----------------------------------------------------------------------
printf 'secret\n' >"$T/roots/password"
printf 'secret\n' >"$T/theirs/password"
chmod 600 "$T/roots/password" "$T/theirs/password"
r config set requirepass secret >/dev/null
REDISCLI_AUTH=secret
export REDISCLI_AUTH
pass_conf() {	# FILE
	cat <<C
redis { server = "unix:$SOCK" password_file = "$1" timeout = 2s }
queue "q" { command = {"$T/work"} user = "root" }
C
}
pass_conf "$T/theirs/password" >"$T/text"
said=$("$RQD" -tt -c "$T/text" 2>&1)
is $? 78 "a password_file of root's in another user's folder"
like "$said" "text:1: password_file .*/theirs/password: .*/theirs belongs to user $EVIL, not to root, so root does not open it for rqd: put it into a directory that only root may write to" \
    'is warned of'
rqd_start theirs <"$T/text"
wait_ok 30 'log_lines theirs/password theirs | grep -q "Permission denied"' 'and not opened as root: the log says so'
is "$(log_count event=ready theirs)" 0 'and rqd waits'
chown "$MAIN_USER" "$T/theirs/password"
wait_ok 20 '[ "$(log_count event=ready theirs)" = 1 ]' 'where the main process may read it, that does'
rqd_stop theirs
# The way for which root must not follow it.
rm "$T/theirs/password"
ln -s "$T/roots/password" "$T/theirs/password"
rqd_start link <"$T/text"
log_wait 30 'event=redis_down|password' 1 link
is "$(log_count event=ready link)" 0 'a link there gives nothing away'
rqd_stop link
# Section redis needs a restart: until that the first one holds.
pass_conf "$T/roots/password" >"$T/text"
rqd_start moved <"$T/text"
log_wait 30 event=ready 1 moved
sed -i "s,roots/password,roots/later," "$T/moved.conf"
rqd_signal HUP moved
log_wait 30 event=reloaded 1 moved
r lpush q moved >/dev/null		# the first handler is closed now
log_wait 30 event=acked 1 moved
r client kill type normal >/dev/null
wait_ok 30 '[ "$(log_count event=redis_up moved)" -eq 2 ]' 'after a reload the password of the first configuration is read'
rqd_stop moved
chown $EVIL "$T/roots/password"
said=$("$RQD" -t -c "$T/text" 2>&1)
like "$said" "password_file: .*/roots/password belongs to user $EVIL, not to root: chown root .*/roots/password; chmod go-w" \
    'a file of another user, in a folder of root'"'"'s, is warned of'
rqd_start owner <"$T/text"
wait_ok 30 '[ "$(log_count event=ready owner)" = 1 ]' 'and opened: only root can have put it there'
rqd_stop owner

# -- includes -------------------------------------------------------------------------
# A user's link to a file that only root may read: errors would print words of it.
echo 'queue "q" { secretword = }' >"$T/hidden/secret"
ln -s "$T/hidden/secret" "$T/theirs/more.conf"
said=$(echo "include(\"$T/theirs/*.conf\")" >"$T/text"; "$RQD" -t -c "$T/text" 2>&1)
unlike "$said" 'secretword|secret' 'nothing of a file is printed that another user has linked to'
like "$said" "text:1: .*/theirs/more.conf: .*/theirs belongs to user $EVIL, not to root" 'the folder is named'
unlike "$(cd "$T" && echo 'include("theirs/more.conf")' >text && "$RQD" -t -c text 2>&1)" \
    secretword 'the same with relative paths'

# It does not read the first line of a command either: by a link it may be any file.
printf '#!/secretword\n' >"$T/hidden/command" && chmod 711 "$T/hidden/command"
ln -s "$T/hidden/command" "$T/theirs/command"
echo "queue \"q\" { command = {\"$T/theirs/command\"} user = \"daemon\" }" >"$T/text"
unlike "$("$RQD" -t -c "$T/text" 2>&1)" secretword 'nor of a command'
