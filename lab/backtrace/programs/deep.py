"""Threads wait 20 calls deep; prints "ready"."""

import threading
import time


def deep(left: int) -> int:
    if left:
        return sorted([0], key=lambda _: deep(left - 1))[0]
    time.sleep(600)
    return 0


threading.Thread(target=deep, args=(20,), daemon=True).start()
time.sleep(1)
print("ready", flush=True)
deep(20)
