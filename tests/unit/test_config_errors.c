/*
 * Wrong configurations: rqd reports all errors of each, with their lines, and no others.
 * All are also loaded 50 times, with a good one after each round, to find leaks and state
 * that remains.
 */
#include "config_fixture.h"

#define C	"redis { cluster = \"a\" }\n"
#define Q(options)	"queue \"q\" { command = {\"/bin/true\"} " options " }"
#define S(options)	Q("") "schedule \"s\" { queue = \"q\" " options " }"

/* Each error is "LINE: the beginning of its text"; the file is t.conf. */
struct wrong {
	const char	*text;
	const char	*errors[10];
};

static const struct wrong syntax[] = {
	/* Blocks, strings and comments that are not closed. */
	{ "queue \"a\" {\n", { "1: queue \"a\" is not closed" } },
	{ "\n\nredis {\n", { "3: redis is not closed" } },
	{ "queue \"a\" {\ncommand={\"/a\"}\nqueue \"b\" { command={\"/a\"} }\n",
	    { "1: queue \"a\" is not closed: \"}\" is missing before queue \"b\" in line 3" } },
	{ "max_handlers = 1\n/* x\n\n", { "2: this comment is not closed" } },
	{ "max_handlers = 1 /* x */ /*", { "1: this comment" } },
	{ "name = \"a\n\n", { "1: this string is not closed: \"" } },
	{ "name = 'a", { "1: this string is not closed: '" } },
	{ "name = 'a\\'", { "1: this string is not closed: '" } },
	{ "name = \"a\\", { "1: this string is not closed" } },
	{ "queue \"a\" {\n user = \"bob\n group = \"x\"\n env = {\"A=b\"}\n}\n",
	    { "2: this string is not closed" } },
	{ "queue \"a\" {\n command = {\"/a\", 'two\nlines'}\n user = \"bob\n}\n",
	    { "4: this string is not closed" } },
	{ "defaults { env = {\"A=b\"\nnice = 1 }", { "1: this list is not closed" } },
	{ "defaults { env = {\"A=b\"", { "1: defaults is not closed",
	    "1: this list is not closed" } },
	{ "redis { server = {\"a\",\n\"b\"\n", { "1: redis is not closed",
	    "1: this list is not closed" } },
	{ "}\n", { "1: unexpected \"}\": no section is open" } },
	{ "redis { }\n}\nmax_handlers = 0\n", { "2: unexpected \"}\"", "3: value 0" } },

	/* Line numbers after comments of all sorts, and after long strings. */
	{ "# a\n# b\n# c\nbogus = 1\n", { "4: unknown option \"bogus\"" } },
	{ "// a\n/* b\nc */ /* d */\n\nbogus = 1\n", { "5: unknown option" } },
	{ "name = \"a\\\n\\\nb\" // x\nbogus = 1\n", { "4: unknown option" } },
	{ "defaults { env = { # one\n \"A=1\", // two\n /* three\n */ \"B\",\n \"RQD_X=1\"\n} }",
	    { "4: \"B\" in env: write \"NAME=value\"" } },
	{ "\r\n\r\nbogus = 1\r\n", { "3: unknown option" } },
	{ "\xef\xbb\xbf\nbogus = 1", { "2: unknown option" } },
	{ "name = 'a#b//c/*d' bogus=1", { "1: unknown option" } },

	/* Input that libconfuse would ignore, or guess at. */
	{ "max_handlers = *5\n", { "1: stray \"*\"" } },
	{ "max_handlers = 5;\n", { "1: \";\" is not needed" } },
	{ "name = \"a\" \"b\"\n", { "1: unexpected string \"b\"" } },
	{ "\nname = \n", { "2: the value of name is missing" } },
	{ "defaults {\n lease =\n nice = 3 }\n", { "2: the value of lease is missing" } },
	{ "name =\nqueue \"a\" { command={\"/a\"} }\n", { "1: the value of name is missing" } },
	{ "name =\nqueue a { command={\"/a\"} }\n", { "1: the value of name is missing" } },
	{ "max_handlers 5\n", { "1: \"=\" is missing after max_handlers" } },
	{ "drain_timeout = 20 s\n",
	    { "1: unexpected \"s\"", "1: value 20 for drain_timeout has no unit: write 20s" } },
	{ "defaults { nice = 1 2 3 }\n", { "1: unexpected \"2\"" } },
	{ "env += {\"A=b\"}\n", { "1: \"+=\" does not add", "1: env does not belong here" } },
	{ "max_handlers == 3\n", { "1: the value of max_handlers is missing",
	    "1: unexpected \"=\"" } },
	{ "redis { server = {\"a\" \"b\"} }", { "1: a comma is missing before \"b\"" } },
	{ "redis { server = {,\"a\"} }", { "1: unexpected \",\" in a list" } },
	{ "redis { server = {{\"a\"}} }",
	    { "1: unexpected \"{\" in a list", "1: unexpected \"}\": no section" } },
	{ "name = http://x\n", { "1: put \"http://x\" into quotes" } },
	{ "name = a\001b\n", { "1: stray \"\\x01\"", "1: unexpected \"b\"" } },
	{ "name = \xc3\xa9\n", { "1: stray", "1: the value of name is missing" } },
	{ "max_handlers = {5}\n", { "1: max_handlers takes one value, not a list" } },
	{ "\"x\" = 3\n", { "1: unexpected string \"x\"" } },
	{ "= 3\n", { "1: unexpected \"=\"" } },

	/* Strings. */
	{ "name = \"\\d\"\n", { "1: bad escape \"\\d\" in a string: write \"\\\\d\"" } },
	{ "name = \"\\0\"\n", { "1: bad escape \"\\0\"" } },
	{ "name = \"\\1234\"\n", { "1: bad escape \"\\1234\"" } },
	{ "name = \"\\400\"\n", { "1: bad escape \"\\400\"" } },
	{ "name = \"\\8\"\n", { "1: bad escape \"\\8\"" } },
	{ "name = \"\\x\"\n", { "1: bad escape \"\\x\"" } },
	{ "name = \"\\x00\"\n", { "1: bad escape \"\\x00\"" } },
	{ "name = \"\n\n\\d \\q\"\n", { "3: bad escape \"\\d\"", "3: bad escape \"\\q\"" } },

	/* Variables. */
	{ "name = \"${RQD_TEST_UNSET}\"\n", { "1: ${RQD_TEST_UNSET} would be replaced now" } },
	{ "name = \"\n${TEST_UNSET}\"\n", { "2: ${TEST_UNSET} is not set in the environment" } },
	{ "name = ${TEST_UNSET}\n", { "1: ${TEST_UNSET} is not set" } },
	{ "name = \"${RQD_ID:-x}\"\n", { "1: ${RQD_ID} would be replaced now" } },
	{ "name = \"${TEST_UNSET\"\n", { "1: \"${\" is not closed" } },
	{ "name = \"${A\nB}\"\n", { "1: \"${\" is not closed" } },
	{ "name = \"${}\"\n", { "1: \"${}\" is not ${NAME}" } },
	{ "name = \"${1}\"\n", { "1: \"${1}\" is not ${NAME}" } },
	{ "name = \"${A%%b}\"\n", { "1: \"${A%%b}\" is not ${NAME}" } },
	{ "name = \"${A-b}\"\n", { "1: \"${A-b}\" is not ${NAME}" } },
	{ "name = \"${#A}\"\n", { "1: \"${#A}\" is not ${NAME}" } },
	{ "name = a${HOME:-x}\n", { "1: unexpected \"${HOME:-x}\"" } },
	{ "name = ${HOME:-x}y\n", { "1: put what goes with ${HOME:-x} into double quotes" } },

	/* Sections. */
	{ "foo { a = 1 b { c = 2 } }\nbar = 1\n",
	    { "1: unknown section \"foo\"", "2: unknown option" } },
	{ "queues \"a\" { }\n", { "1: unknown section \"queues\"; did you mean queue?" } },
	{ "default { }\n", { "1: unknown section \"default\"; did you mean defaults?" } },
	{ "queue { command = {\"/a\"} }\n", { "1: the queue has no name" } },
	{ "log \"x\" { }\n", { "1: log has no name: write log { }" } },
	{ "redis {\n foo { }\n}\n", { "2: foo: there are no sections inside" } },
	{ "redis { include(\"x\") }\n", { "1: include stands outside" } },
	{ "include = \"x\"\n", { "1: unknown option \"include\"" } },
	{ "include \"x\"\n", { "1: write include(\"/path/*.conf\")" } },
	{ "include()\n", { "1: write include(" } },
	{ "include(\"a\", \"b\")\n", { "1: write include(" } },
	{ "include(\"nothing.conf\")\n", { "1: include: there is no file nothing.conf" } },
	{ "schedule \"a\" { every = 5m }\n", { "1: schedule \"a\" has no queue: write queue =" } },
	{ "schedule { every = 5m }\n", { "1: schedule \"\" has no queue",
	    "1: the schedule has no name: write schedule \"NAME\" { }" } },
	{ "shedule \"a\" { }\n", { "1: unknown section \"shedule\"; did you mean schedule?" } },
	{ "schedule \"a\" {\n", { "1: schedule \"a\" is not closed" } },
};

static const struct wrong values[] = {
	/* Names of options. */
	{ "max_handler = 1\n",
	    { "1: unknown option \"max_handler\"; did you mean max_handlers?" } },
	{ Q("timelimit = 1s"), { "1: unknown option \"timelimit\"; did you mean time_limit?" } },
	{ Q("\nlevel = \"info\""), { "2: level does not belong here: it stands in log { }" } },
	{ "lease = 5s\n", { "1: lease does not belong here: it stands in queue" } },
	{ "log { server = \"a\" }\n",
	    { "1: server does not belong here: it stands in redis { }" } },
	{ "defaults { key = \"a\" }\n", { "1: key belongs to one queue" } },
	{ Q("\nnice = 1\n# x\nnice = 2"), { "4: nice is given twice (first at t.conf:2)" } },
	{ "log { level = \"info\" }\nlog { level = \"info\" }\n",
	    { "2: level is given twice (first at t.conf:1)" } },
	{ "max_handlers = 1\nmax_handlers = 1\nmax_handlers = 1\n",
	    { "2: max_handlers is given twice",
	    "3: max_handlers is given twice" } },

	/* Numbers, durations, sizes. */
	{ Q("concurrency = 10001"),
	    { "1: value 10001 for concurrency is out of range 0 to 10000: " } },
	{ Q("concurrency = -1"), { "1: value -1 for concurrency is out of range" } },
	{ Q("concurrency = 99999999999999999999"), { "1: value 99999999999999999999 for" } },
	{ Q("concurrency = 0x10"), { "1: value \"0x10\" for concurrency is not a whole number" } },
	{ Q("concurrency = two"),
	    { "1: value \"two\" for concurrency is not a whole number: write 0 to 10000" } },
	{ Q("concurrency = \"\""), { "1: value \"\" for concurrency is not a whole number" } },
	{ Q("concurrency = 1.5"), { "1: value \"1.5\" for concurrency is not" } },
	{ Q("lease = 30"), { "1: value 30 for lease has no unit: write 30s" } },
	{ Q("lease = 2s"), { "1: value 2s for lease is out of range 3s to 1d" } },
	{ Q("lease = 25h"), { "1: value 25h for lease is out of range" } },
	{ Q("lease = 1w"), { "1: value \"1w\" for lease is not a duration such as 30s" } },
	{ Q("time_limit = 1us"), { "1: value \"1us\" for time_limit is not a duration" } },
	{ Q("time_limit = 0.5ms"),
	    { "1: value 0.5ms for time_limit is out of range 1ms to 365d or 0" } },
	{ Q("message_max = 513M"), { "1: value 513M for message_max is out of range 1 to 512M" } },
	{ Q("message_max = 0"), { "1: value 0 for message_max is out of range" } },
	{ Q("message_max = 16MB"),
	    { "1: value \"16MB\" for message_max is not a size such as 64K" } },
	{ Q("limit_as = 1025T"),
	    { "1: value 1025T for limit_as is out of range 1M to 1024T or \"inherit\"" } },
	{ Q("limit_cpu = 500ms"),
	    { "1: value 500ms for limit_cpu is not a whole number of seconds" } },
	{ Q("limit_nofile = none"),
	    { "1: value \"none\" for limit_nofile is not a whole number: write 16 to" } },
	{ Q("nice = 20"), { "1: value 20 for nice is out of range -20 to 19" } },
	{ Q("priority = 1001"), { "1: value 1001 for priority is out of range" } },
	{ Q("max_attempts = 0"), { "1: value 0 for max_attempts is out of range" } },
	{ Q("umask = 8"), { "1: value \"8\" for umask is not an octal number" } },
	{ Q("umask = 1777"), { "1: value \"1777\" for umask is not an octal number" } },
	{ "redis { database = -1 }", { "1: value -1 for database is out of range" } },
	{ "redis { timeout = 1ms }", { "1: value 1ms for timeout is out of range 100ms to 10m" } },
	{ "log { payloads = maybe }", { "1: value \"maybe\" for payloads: write true or false" } },

	/* Options with a choice of words. */
	{ Q("kind = \"ackk\""), { "1: kind \"ackk\" is unknown: write \"ack\"" } },
	{ Q("mode = \"x\""), { "1: mode \"x\" is unknown: write \"exec\"" } },
	{ Q("output = \"x\""), { "1: output \"x\": write \"log\", \"none\", or" } },
	{ "log { level = \"INFO\" }", { "1: level \"INFO\" is unknown: write \"error\" or" } },
	{ "log { target = \"rqd.log\" }", { "1: target \"rqd.log\": write" } },

	/* Lists and strings. */
	{ Q("dead_status = {0}"), { "1: value 0 for dead_status is out of range 1 to 255" } },
	{ Q("dead_status = {65,\n256}"), { "2: value 256 for dead_status is out of range" } },
	{ Q("dead_status = 127"), { "1: value 127 for dead_status: 126 and 127 mean" } },
	{ Q("dead_status = {x}"), { "1: value \"x\" for dead_status is not a whole number" } },
	{ Q("env = {\"=x\"}"), { "1: \"=x\" in env: write \"NAME=value\"" } },
	{ Q("env = {\"1A=x\"}"), { "1: \"1A=x\" in env" } },
	{ Q("env = {\"RQD_ID=x\"}"), { "1: RQD_ID in env: names that begin with RQD_" } },
	{ Q("directory = \"tmp\""), { "1: \"tmp\" is not an absolute path" } },
	{ Q("directory = \"\""), { "1: an empty path" } },
	{ Q("env_file = \"x\""), { "1: \"x\" is not an absolute path" } },
	{ Q("key = \"a\\nb\""), { "1: \"a\\nb\" has control characters" } },
	{ Q("key = \"\\xe9\""), { "1: \"\xe9\" is not UTF-8" } },
	{ "queue \"q\" { }\n", { "1: queue \"q\" has no command: write command = {" } },
	{ "queue \"q\" { command = {} }\n", { "1: the command is empty" } },
	{ "queue \"q\" { command = {\"true\"} }\n",
	    { "1: the command \"true\" is not an absolute path" } },
	{ "queue \"q\" {\ncommand = \"/bin/echo a  b\" }\n",
	    { "2: command is a list of words, and no shell splits it: write {\"/bin/echo\", "
	    "\"a\", \"b\"}" } },
	{ "redis { server = {} }", { "1: no server: write host:port" } },
	{ "redis { server = \"redis://a\" }", { "1: \"redis://a\" is a URL" } },
	{ "redis { server = {\"a:1\",\n\"b:x\"} }", { "2: \"b:x\": the port must be" } },
	{ "redis { sentinel = \"s1\" }", { "1: sentinel without master: write the name" } },
	{ "redis {\nmaster = \"m\" }", { "2: master has no meaning without sentinel" } },
	{ "redis { sentinel_username = \"u\" }", { "1: sentinel_username has no meaning" } },
	{ "redis { sentinel = \"unix:/s\" master = \"m\" }", { "1: sentinel \"unix:/s\": write "
	    "host:port; a Sentinel has no unix socket" } },
	{ "redis { sentinel = {\"a\",\n\"b:x\"} master = \"m\" }", { "2: \"b:x\": the port" } },
	{ "redis { server = \"a\"\nsentinel = \"s1\" master = \"m\" }",
	    { "2: server at t.conf:1 says where Redis is: remove that, or sentinel" } },
	{ "redis { server = \"sentinel://s1\" }",
	    { "1: \"sentinel://s1\": write sentinel://MASTER@HOST:PORT" } },
	{ "redis { server = \"sentinel://m@s1\"\nmaster = \"m\" }",
	    { "1: server gives the Sentinels, and so does master: remove one" } },

	/* Redis Cluster. */
	{ "redis { cluster = \"unix:/s\" }", { "1: cluster \"unix:/s\": write host:port" } },
	{ "redis { cluster = {\"a\",\n\"b:x\"} }", { "2: \"b:x\": the port" } },
	{ "redis { server = \"a\"\ncluster = \"c1\" }",
	    { "2: server at t.conf:1 says where Redis is: remove that, or cluster" } },
	{ "redis { cluster = \"c1\"\nsentinel = \"s1\" master = \"m\" }",
	    { "2: cluster at t.conf:1 says where Redis is: remove that, or sentinel" } },
	{ "redis { server = \"cluster://\" }",
	    { "1: \"cluster://\": write cluster://HOST:PORT,HOST:PORT" } },
	{ "redis { server = \"cluster://a\"\ncluster = \"b\" }",
	    { "1: server gives the cluster, and so does cluster: remove one" } },
	{ "redis { cluster = \"a\"\nmaster = \"m\" }",
	    { "2: master has no meaning without sentinel" } },
	{ "redis { cluster = \"a\"\ndatabase = 1 }",
	    { "2: database 1 with cluster: a Redis Cluster has database 0 only" } },
	{ C "queue \"o\" { command = {\"/bin/true\"} }", { "2: the key \"o\" of queue \"o\" has no "
	    "hash tag, and on a cluster all keys of a queue must be in one slot: write "
	    "key = \"{o}\"" } },
	{ C "queue \"o\" { command = {\"/bin/true\"}\nkey = \"{}o\" }",
	    { "3: the key \"{}o\" of queue \"o\" has no hash tag" } },
	{ C "queue \"j\" { command = {\"/bin/true\"} kind = \"unique\" }",
	    { "2: the key \"Queue:j\" of queue \"j\" has no hash tag, and on a cluster all keys of "
	    "a queue must be in one slot: write key = \"Queue:{j}\"" } },
	{ C "queue \"{e}\" { command = {\"/bin/true\"} kind = \"expired\"\ndatabase = 2 }",
	    { "3: database 2: a Redis Cluster has database 0 only" } },
	{ C "queue \"o\" { shards = 4 command = {\"/bin/true\"}\nkey = \"{o}\" }",
	    { "3: the key \"{o}\" of a queue with shards has a brace" } },
	{ C "queue \"o\" { key = \"{o}\" command = {\"/bin/true\"}\npushes = {\"t\"} }\n"
	    "queue \"t\" { shards = 4 command = {\"/bin/true\"} }",
	    { "3: pushes names \"t\", and queue \"t\" has shards" } },
	{ C "queue \"o\" { key = \"{o}\" command = {\"/bin/true\"}\npushes = {\"t\"} }\n"
	    "queue \"t\" { key = \"{t}\" command = {\"/bin/true\"} }",
	    { "3: pushes names \"t\", whose key \"{t}\" is in another slot of the cluster than "
	    "\"{o}\": give both one hash tag, such as key = \"{o}:t\" for queue \"t\"" } },
	{ "redis { tls_cert = \"/a\" }", { "1: tls_cert and tls_key go together" } },

	/* Handlers that push to other queues: pushes and output. */
	{ Q("output = \"file\""),
	    { "1: output \"file\": write \"log\", \"none\", or \"push:QUEUE\"" } },
	{ Q("output = \"push:\""), { "1: output \"push:\": write \"log\"" } },
	{ Q("push_max = 0"), { "1: value 0 for push_max is out of range 1 to 10000" } },
	{ Q("pushes = \"r\""), { "1: pushes is a list of words" } },
	{ Q("\npushes = {\"r\"}"), { "2: pushes names \"r\", and there is no queue of this name: "
	    "add queue \"r\" { concurrency = 0 } if others consume it" } },
	{ Q("\npushes = {\"r\"}") "queue r { kind = stream concurrency = 0 }",
	    { "2: pushes names \"r\", a queue of kind \"stream\": handlers can push to queues of "
	    "kind \"ack\" only" } },
	{ Q("\noutput = \"push:r\"") "queue r { concurrency = 0 }",
	    { "2: output = \"push:r\", and pushes does not list \"r\": write pushes = {\"r\"}" } },
	{ Q("\nmode = persistent pushes = {\"r\"}\noutput = \"push:r\"") "queue r { "
	    "concurrency = 0 }",
	    { "3: output = \"push:r\" has no meaning with mode \"persistent\"" } },
	{ Q("\npushes = {\"r s\"}") "queue 'r s' { concurrency = 0 }",
	    { "2: pushes names \"r s\", and no handler can: in \"push NAME MESSAGE\" the name ends "
	    "at the first blank; give the queue a name without blanks, and key = \"r s\"" } },
	{ Q("\npushes = {\"r s\", \"r\"} output = \"push:r s\" verdicts = false")
	    "queue 'r s' { concurrency = 0 } queue r { concurrency = 0 }",
	    { "2: pushes names \"r\", and no handler can push to it: verdicts = false closes "
	    "descriptor 3; write verdicts = true or output = \"push:r\"" } },
	{ "defaults { verdicts = false }" Q("mode = persistent\npushes = {\"r\"}\nlease = 2s")
	    "queue r { concurrency = 0 }", { "3: value 2s for lease is out of range" } },
	{ Q("\nkind = list pushes = {\"r\"}") "queue r { concurrency = 0 }",
	    { "2: pushes has no meaning with kind \"list\"" } },
	{ Q("\nkind = list output = \"push:r\"") "queue r { concurrency = 0 }",
	    { "2: output = \"push:r\" has no meaning with kind \"list\", which does not keep" } },

	/* Options that contradict each other. */
	{ Q("backoff = 2h"), { "1: backoff 2h is longer than backoff_max 1h" } },
	{ Q("\nbackoff_max = 1s"), { "2: backoff 5s is longer than backoff_max 1s" } },
	{ "defaults {\nbackoff = 2h }\n" Q("") "queue \"r\" { command = {\"/a\"} }",
	    { "2: backoff 2h is longer" } },
	{ "defaults {\nnice = 99 }\n" Q("") "queue \"r\" { command = {\"/a\"} }",
	    { "2: value 99 for nice is out of range" } },
	{ "defaults {\nnice = 99 }\n", { "2: value 99 for nice is out of range" } },

	/* Queues against each other. */
	{ Q("") "\n\n" Q("") "\n" Q(""), { "3: queue \"q\" is defined twice (first at t.conf:1)",
	    "4: queue \"q\" is defined twice (first at t.conf:3)" } },
	{ Q("") "\nqueue \"r\" { command = {\"/a\"}\nkey = \"q\" }",
	    { "3: queue \"r\" has the same key as queue \"q\" (t.conf:1): \"q\"" } },
	{ Q("") "\nqueue \"qDEAD\" { command = {\"/a\"} }\nqueue \"x\" { command = {\"/a\"} "
	    "key = \"qRATE\" }",
	    { "2: the key \"qDEAD\" of queue \"qDEAD\" is one that queue \"q\" (t.conf:1) uses",
	    "3: the key \"qRATE\" of queue \"x\" is one that queue \"q\" (t.conf:1) uses" } },
	{ "queue \"qSTATS\" { command = {\"/a\"} }\n" Q(""),
	    { "1: the key \"qSTATS\" of queue \"qSTATS\" is one that queue \"q\" (t.conf:2) "
	    "uses" } },
	{ Q("kind = \"stream\" consumer_group = \"\""),
	    { "1: a consumer group must have a name" } },
	{ Q("key = \"rqd:daemons\""), { "1: the key \"rqd:daemons\" is one that daemons use" } },
	{ Q("key = \"rqd:daemons:queues\""),
	    { "1: the key \"rqd:daemons:queues\" is one that daemons use" } },
	{ "queue \"\" { command = {\"/a\"} }", { "1: queue \"\": a name has 1 to 200 bytes" } },
	{ "queue \"a\xe9\" { command = {\"/a\"} }",
	    { "1: queue \"a\xe9\": a name has 1 to 200 bytes of UTF-8" } },
	{ "queue \"a\\tb\" { command = {\"/a\"} }", { "1: queue \"a\\x09b\": a name has" } },

	/* Shards. */
	{ Q("\nshards = 12"), { "2: shards 12 is not a power of two: write 8 or 16" } },
	{ Q("shards = 0"), { "1: value 0 for shards is out of range 1 to 256" } },
	{ Q("shards = 512"), { "1: value 512 for shards is out of range 1 to 256" } },
	{ Q("shards = 2\nshards_drain = 3"),
	    { "2: shards_drain 3 is not a power of two: write 2 or 4" } },
	{ Q("shards = 8\nshards_drain = 8"), { "2: shards_drain 8 is not above shards 8" } },
	{ Q("shards = 8\nshards_drain = 4"), { "2: shards_drain 4 is not above shards 8" } },
	{ Q("shards = 8\nrate = \"1/s\""), { "2: rate cannot be used with shards" } },
	{ Q("shards_drain = 8\nrate = \"1/s\"\nfleet_concurrency = 1"),
	    { "2: rate cannot be used with shards",
	    "3: fleet_concurrency cannot be used with shards" } },
	{ Q("shards = 2\nkey = \"{q}\""),
	    { "2: the key \"{q}\" of a queue with shards has a brace" } },
	{ "queue \"a}\" { command = {\"/a\"}\nshards = 2 }",
	    { "2: the key \"a}\" of a queue with shards has a brace" } },
	{ Q("kind = \"list\"\nshards = 2"), { "2: shards has no meaning with kind \"list\"" } },
	{ "defaults {\nshards = 2 }\n" Q(""), { "2: shards" } },
	{ Q("shards = 2") "\nqueue \"r\" { command = {\"/a\"} key = \"{q.0}\" }",
	    { "2: the key \"{q.0}\" of queue \"r\" is one that queue \"q\" (t.conf:1) uses" } },
	{ "queue \"r\" { command = {\"/a\"} key = \"{q.0}DEAD\" }\n" Q("shards = 2"),
	    { "1: the key \"{q.0}DEAD\" of queue \"r\" is one that queue \"q\" (t.conf:2)" } },

	/* Schedules. */
	{ S(""), { "1: schedule \"s\" does not say when: write every = 1h or cron" } },
	{ S("cron = \"\"\nevery = 0s"),
	    { "2: schedule \"s\": every is 0, and there is no cron: write every" } },
	{ S("every = 1h\ncron = @daily"), { "2: schedule \"s\" has both every and cron" } },
	{ S("every = 999ms"), { "1: value 999ms for every is out of range 1s to 365d or 0" } },
	{ S("every = 1500ms"), { "1: every is a whole number of seconds" } },
	{ S("\ncron = \"0 0 30 feb *\""), { "2: cron \"0 0 30 feb *\": no month of these" } },
	{ S("cron = \"61 * * * *\""),
	    { "1: cron \"61 * * * *\": \"61\" in the field for the minute: write 0 to 59" } },
	{ S("cron = @daily timezone = \"../x\""), { "1: \"../x\" is not the name of a timezone" } },
	{ S("every = 1h\ntimezone = \"Europe/Berlin\""),
	    { "2: timezone has a meaning with cron only" } },
	{ S("every = 1h catch_up = 1"), { "1: value \"1\" for catch_up: write true or false" } },
	{ S("every = 1h lease = 5s"), { "1: lease does not belong here: it stands in queue" } },
	{ Q("every = 1h"),
	    { "1: every does not belong here: it stands in schedule \"NAME\" { }" } },
	{ S("every = 1h") "\n" "schedule \"s\" { queue = \"q\" every = 1h }",
	    { "2: schedule \"s\" is defined twice (first at t.conf:1)" } },
	{ "schedule \"s\" { every = 1h\nqueue = \"r\" }\n" Q(""),
	    { "2: there is no queue \"r\"" } },
	{ Q("message_max = 3") "\nschedule \"s\" { queue = \"q\" every = 1h message = \"four\" }",
	    { "2: the message is longer than message_max of queue \"q\"" } },
	{ Q("kind = channel") "\nschedule \"s\" { every = 1h queue = \"q\" }",
	    { "2: queue \"q\" is of kind channel, which holds no messages" } },
	{ Q("kind = unique") "\nschedule \"s\" { queue = \"q\" every = 1h message = \"a\nb\" }",
	    { "2: the messages of queue \"q\" are ids" } },
	{ "schedule \"a\nb\" { queue = \"q\" every = 1h }" Q(""),
	    { "1: schedule \"a\\nb\": a name" } },

	/* Options of kinds. */
	{ Q("fleet_concurrency = -1"), { "1: value -1 for fleet_concurrency is out of range" } },
	{ Q("rate = \"100\""), { "1: rate \"100\": write \"100/s\"" } },
	{ Q("rate = \"0/s\""), { "1: rate \"0/s\" is out of range" } },
	{ Q("rate = \"1/w\""), { "1: rate \"1/w\": write" } },
	{ Q("pop = \"left\""), { "1: pop has no meaning with kind \"ack\" and mode \"exec\"" } },
	{ Q("key = {\"a\", \"b\"}"), { "1: key takes one value with kind \"ack\"" } },
	{ Q("kind = \"channel\" key = {\"a\", \"b\", \"a\"}"), { "1: key names \"a\" twice" } },
	{ Q("kind = \"channel\" key = {\"a\", \"\"}"), { "1: one of several keys is empty" } },
	{ Q("kind = \"pattern\" dead_status = 3"),
	    { "1: dead_status has no meaning with kind \"pattern\"" } },
	{ Q("match = x"), { "1: match has no meaning with kind \"ack\"" } },
	{ Q("kind = expired skew = 50ms"),
	    { "1: value 50ms for skew is out of range 100ms to 1d" } },
	{ Q("kind = expired notifications = on"),
	    { "1: notifications \"on\" is unknown: write \"check\" or \"set\"" } },
	{ Q("kind = expired database = -2"), { "1: value -2 for database is out of range" } },
	{ Q("backlog = 3"), { "1: backlog has no meaning with kind \"ack\"" } },
	{ Q("kind = \"list\" pop = \"top\""),
	    { "1: pop \"top\" is unknown: write \"right\" or \"left\"" } },
	{ Q("kind = \"list\"\nlease = 30s dead_max = 5"),
	    { "2: lease has no meaning with kind \"list\"", "2: dead_max has no meaning" } },
	{ Q("pipeline = 3"), { "1: pipeline has no meaning with kind \"ack\" and mode \"exec\"" } },
	{ "http { listen = \"localhost:80\" }",
	    { "1: \"localhost:80\": localhost is not an address" } },
	{ "http { listen = \"127.0.0.1\" }", { "1: \"127.0.0.1\": write an address and a port" } },

	/* Errors of many kinds in one file: none hides another. */
	{ "# x\nbogus = 1\nredis { timeout = 5 }\n" Q("nice = 99 lease = 1\nfoo = 2")
	    "\nlog { level = 'x' } }\nmax_handlers = *0",
	    { "2: unknown option", "3: value 5 for timeout", "4: value 99", "4: value 1 for lease",
	    "5: unknown option \"foo\"", "6: unexpected \"}\"", "6: level \"x\"", "7: stray \"*\"",
	    "7: value 0 for max_handlers" } },
};

static bool
is_expected(const char *got, const char *want)
{
	return strncmp(got, "t.conf:", 7) == 0 && strncmp(got + 7, want, strlen(want)) == 0;
}

/* All wanted errors are there, in order of their lines, and no others. */
static void
check_report(const struct wrong *w, const struct config_report *r)
{
	size_t n = 0, i, j;
	bool ok;

	while (n < ARRAY_LEN(w->errors) && w->errors[n] != NULL)
		n++;
	ok = r->errors.n == n;
	for (i = 0; i < n; i++) {
		for (j = 0; j < r->errors.n && !is_expected(r->errors.v[j], w->errors[i]); j++)
			continue;
		ok = ok && j < r->errors.n;
	}
	for (i = 1; i < r->errors.n; i++)
		ok = ok && atoi(r->errors.v[i - 1] + 7) <= atoi(r->errors.v[i] + 7);
	if (ok)
		return;
	print_message("# in: %s\n", w->text);
	for (i = 0; i < n; i++)
		print_message("# want: %s\n", w->errors[i]);
	for (i = 0; i < r->errors.n; i++)
		print_message("# got:  %s\n", r->errors.v[i]);
	fail();
}

static void
run(const struct wrong *cases, size_t n)
{
	struct config_report r;
	size_t i;

	for (i = 0; i < n; i++) {
		put("t.conf", cases[i].text);
		if (load_file("t.conf", &r) != NULL)
			fail_msg("accepted: %s", cases[i].text);
		check_report(&cases[i], &r);
		config_report_done(&r);
	}
}

TEST(test_syntax)
{
	run(syntax, ARRAY_LEN(syntax));
}

TEST(test_values)
{
	run(values, ARRAY_LEN(values));
}

/* A wrong file does not change how the next file is read. */
TEST(test_again_and_again)
{
	static const char good[] = "# x\nredis { server = \"h\" }\n" Q("env = {\"A=${B:-c}\"}");
	struct config_report r;
	struct config *c;
	char hash[17] = "";
	size_t i;
	int round;

	put("good.conf", good);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < ARRAY_LEN(syntax) + ARRAY_LEN(values); i++) {
			put("t.conf", i < ARRAY_LEN(syntax) ? syntax[i].text :
			    values[i - ARRAY_LEN(syntax)].text);
			assert_null(load_file("t.conf", &r));
			config_report_done(&r);
		}
		c = load_good("good.conf");
		if (round == 0)
			strcpy(hash, c->hash);
		assert_string_equal(c->hash, hash);
		assert_string_equal(c->queues[0]->env[0], "A=c");
		config_unref(c);
	}
}

/* A file with 1100 warnings and no error is accepted; the report is cut after 1000. */
TEST(test_many_warnings)
{
	struct buf b = BUF_INIT;
	struct config_report r;
	struct config *c;

	for (int i = 0; i < 1100; i++)
		buf_printf(&b, "queue \"q%d\" { command = {\"/x\"} lease = 5s }\n", i);
	put_bytes("t.conf", b.data, b.len);
	c = load_file("t.conf", &r);
	assert_non_null(c);
	assert_int_equal(r.errors.n, 0);
	assert_int_equal(r.warnings.n, 1001);
	assert_string_equal(r.warnings.v[1000], "and 100 more");
	config_report_done(&r);
	config_unref(c);
	buf_done(&b);
}

/* A file of random punctuation makes a report of at most 1001 errors. */
TEST(test_rubbish)
{
	size_t n = 1 << 20, i;
	char *text = xmalloc(n);
	struct config_report r;

	for (i = 0; i < n; i++)
		text[i] = "?=}{"[unit_below(4)];
	put_bytes("t.conf", text, n);
	assert_null(load_file("t.conf", &r));
	assert_in_range(r.errors.n, 1, 1001);
	config_report_done(&r);
	free(text);
}
