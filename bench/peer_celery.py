"""Jobs of Celery: as rqd does, they run a program with the message on stdin."""
import os
import subprocess

from celery import Celery

STAMP = [os.environ.get("BENCH_STAMP", ""), os.environ.get("BENCH_STAMPS", "")]

app = Celery("peer_celery", broker=os.environ.get("BENCH_REDIS", "redis://127.0.0.1/0"))
app.conf.task_acks_late = True
app.conf.task_ignore_result = True
app.conf.worker_hijack_root_logger = False


@app.task(name="peer.run")
def run(text):
    subprocess.run(STAMP, input=text.encode(), check=True)


@app.task(name="peer.noop")
def noop(text):
    pass
