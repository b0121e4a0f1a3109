import json,time
from tests.lab.cutting import *
def test_it(master):
    m=master
    t0=time.monotonic()
    say=lambda *a: print(f"{time.monotonic()-t0:6.1f}",*a,flush=True)
    c=Copying(m,m,chain=Chain(a=24, b=4, c=4), rate="4M", stall_after="2s", usb=True); say("scene",c.stream)
    run=c.begin()
    for i in range(30):
        time.sleep(2)
        say(m.sh(f"zfs get -Hpo value used,receive_resume_token {COPY} | cut -c1-20",check=False).text.split(), m.sh("ps -eo args | grep zfs | head -3 | cut -c1-80").text.split("\n")[:2])
        if run.poll() is not None: break
    e=run.wait(100); print(e.complaint)
    a=answer(e); print({k:v for k,v in a.items() if k!="steps"}); 
    for s in a["steps"]: print(s)
