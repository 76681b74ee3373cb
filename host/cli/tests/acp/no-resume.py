"""An agent that announces no `session/resume`: passes on what `PROGRAM ARGUMENT...` answers to this program's input.

A client that can do both takes `session/load` then.
"""

import subprocess
import sys

with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as agent:
    for line in agent.stdout:
        sys.stdout.buffer.write(line.replace(b'"resume":{},', b""))
        sys.stdout.buffer.flush()
