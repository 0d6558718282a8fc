#!/bin/sh
# Makes the user _rqd, as a package does: rqd needs it where root starts it.  Tests run at the
# same time, so one of them makes it while others wait.
[ "$(id -u)" -eq 0 ] || exit 0
getent passwd _rqd >/dev/null && exit
exec flock "$0" sh -c 'getent passwd _rqd || useradd --system --shell /usr/sbin/nologin _rqd' >/dev/null
