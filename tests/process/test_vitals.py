"""Signs of life are read of a whole tree, sessions of its own included."""

import os
import subprocess
import time

from orchestrator.process.meter import process_activity


def test_a_process_and_all_below_it_are_seen() -> None:
    script = "setsid sh -c 'head -c 3000000 /dev/zero >/dev/null; : ; echo up; sleep 60' & wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            end = time.monotonic() + 10
            while len(found := process_activity(child.pid)) < 3 and time.monotonic() < end:
                time.sleep(0.02)
            assert len(found) == 3  # the shell, the one in a session of its own, and its sleep
            assert found[0].pid == child.pid
            assert all(each.processor_s >= 0 for each in found)
        finally:
            for each in process_activity(child.pid):
                os.kill(each.pid, 9)


def test_work_and_bytes_show() -> None:
    script = "import os\nx=0\nfor i in range(3000000): x+=i\nos.write(1, b'x'*100000)\ninput()"
    with subprocess.Popen(["python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        read = 0
        while read < 100_000:
            read += len(os.read(child.stdout.fileno(), 1 << 16))
        (seen,) = process_activity(child.pid)
        assert seen.processor_s > 0
        assert seen.moved is not None
        assert seen.moved >= 100_000
        child.communicate(b"\n")
    assert process_activity(child.pid) == ()
