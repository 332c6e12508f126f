"""A real vLLM that answers questions, one after another, in a process of its own."""

import json
import subprocess
from collections import deque
from pathlib import Path
from threading import Thread

ASK = Path(__file__).with_name("ask_vllm.py")


class Engine:
    """The client of ask_vllm.py: one process for a whole session, since vLLM takes long to import."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said = deque(maxlen=40)
        Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    def ask(self, kind, **question):
        """Return vLLM's answer; a refusal is an answer too."""
        try:
            self.process.stdin.write(json.dumps({"ask": kind, **question}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError("the engine ended; it said last:\n" + "".join(self.said))
        return json.loads(line)

    def close(self):
        """End the process and whatever it still has open."""
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()
