# Judges the fate of the messages of cluster_load.py: python3 cluster_judge.py WHAT
# PUSHED RAN FAULTS
#
# A line of RAN is "QUEUE ID TIME DAEMON", one for each run.  A line of FAULTS is "NAME FROM TO
# AGAIN LABEL...": a fault, when it was, whose messages may run again because of it, and the
# labels whose messages may wait for it.  AGAIN is "none"; "all": Redis may have forgotten
# acknowledgements of these labels; or "by:DAEMON": what that daemon ran.  A label is a queue's,
# or one shard's.  Prints, one a line, for WHAT
#
#	waiting	the labels of which something that was confirmed has not run (yet)
#	lost	the messages that never ran; of kind "list" but those pushed during a fault
#	twice	the messages that ran again with no fault of theirs just before or then
#	again	how many ran again with one
#	waited	how long messages waited that no fault concerned, by label
#	stall	the longest time in ms in which nothing was pushed at all: the machine stood still
#	resumed TIME LABEL...	ms from TIME to the next run, by label; what no replica has
#		confirmed counts, too: the replica may be what is missing
import sys

SLACK = 5.0     # seconds before a fault that its consequences reach back
what, pushed_file, ran_file, faults_file = sys.argv[1:5]

def lines(name):
    with open(name) as file:
        return [line.split() for line in file if line.endswith("\n")]

# Entries of two streams can have the same id.
pushed = {(label.split(".")[0], id): (label, float(sent), float(said))
          for label, id, sent, said in lines(pushed_file)}
ran = {}
for queue, id, at, daemon in lines(ran_file):
    ran.setdefault((queue, id), []).append((float(at), daemon))
for runs in ran.values(): runs.sort()
faults = [(f[0], float(f[1]), float(f[2]), f[3], set(f[4:])) for f in lines(faults_file)]

def concerned(label, since, until):
    return any(label in labels and begin - SLACK < until and since < end + SLACK
               for _, begin, end, _, labels in faults)

def may_run_again(label, at, daemon):
    return any(again in ("all", "by:" + daemon) and label in labels and
               begin - SLACK < at < end + SLACK for _, begin, end, again, labels in faults)

def first(id):
    return ran[id][0][0]

# Whether each of its runs but the last has a fault that explains the next one.
def is_explained(id):
    return all(may_run_again(pushed[id][0], *run) for run in ran[id][:-1])

if what == "waiting":
    newest = {}     # of each queue, the highest number that has run
    for queue, id in ran:
        number = id.rsplit("-", 1)[-1]
        if number.isdigit():
            newest[queue] = max(int(number), newest.get(queue, 0))
    # Of kind "list", a message that eight later ones have overtaken is gone, or in the hands of
    # a daemon that hangs.
    print(" ".join(sorted({label for id, (label, _, _) in pushed.items() if id not in ran and
                           not (label.startswith("list") and
                                newest.get(label, 0) > int(id[1].rsplit("-", 1)[1]) + 8)})))
elif what == "lost":
    for id, (label, sent, said) in pushed.items():
        if id not in ran and not (label.startswith("list") and concerned(label, sent, said)):
            print(label, id[1], "pushed at", sent, "confirmed at", said)
elif what == "twice":
    for id, runs in ran.items():
        if id in pushed and not is_explained(id):
            print(pushed[id][0], id[1], "at", *("%.2f by %s" % run for run in runs))
elif what == "again":
    print(sum(len(runs) > 1 and id in pushed and is_explained(id) for id, runs in ran.items()))
elif what == "waited":
    for name in sorted({label for label, _, _ in pushed.values()}):
        waits = sorted(first(id) - sent for id, (label, sent, _) in pushed.items()
                       if label == name and id in ran and not concerned(name, sent, first(id)))
        if waits:
            print("%s: %d messages, half within %d ms, 99%% within %d, all within %d" % (
                name, len(waits), *(1000 * waits[int(q * (len(waits) - 1))] for q in (.5, .99, 1))))
elif what == "stall":
    times = sorted(said for _, _, said in pushed.values())
    print(int(1000 * max(b - a for a, b in zip(times, times[1:]))))
elif what == "resumed":
    since = float(sys.argv[5])
    for name in sys.argv[6:]:
        later = [(runs[0][0] - since) * 1000 for (queue, id), runs in ran.items()
                 if name in (queue, id.rsplit("-", 1)[0]) and runs[0][0] > since]
        if later:
            print("%s %d" % (name, min(later)))
