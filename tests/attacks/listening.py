"""A process with workers of joblib or Ray that says who they are and where they listen, and waits.

To be killed: the test looks for what is left.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from transduce.benchmark.executors.joblib import JoblibExecutor
from transduce.machine import processes
from transduce.machine.cluster import Cluster


def listening(workers):
    """The addresses, in the kernel's hexadecimal, at which these processes listen."""
    inodes = set()
    for process in workers:
        for file in Path(f"/proc/{process}/fd").iterdir():
            try:
                inodes.add(str(file.readlink()).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    addresses = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                addresses.append(words[1].partition(":")[0])
    return addresses


def wait(features, job):
    time.sleep(600)


def start(kind):
    if kind == "ray":
        cluster = Cluster(1)
        for lane in cluster.tasks(wait, None)[:2]:
            lane(0)
        return [os.fsencode(cluster.ray._private.worker._global_node.get_session_dir_path())]
    jobs = JoblibExecutor(2).run(wait, None, [0, 1])
    threading.Thread(target=lambda: next(jobs), daemon=True).start()
    return []


if __name__ == "__main__":
    folders = start(sys.argv[1])
    workers = []
    while len(workers) < int(sys.argv[2]):  # until they are all there
        time.sleep(0.1)
        mark = f"{processes.MARK}={os.environ.get(processes.MARK)}".encode()
        workers = [*processes.family(mark, folders)]
    told = {"workers": workers, "folders": [os.fsdecode(f) for f in folders], "mark": mark.decode()}
    print(json.dumps({**told, "listening": listening(workers)}), flush=True)
    time.sleep(600)
