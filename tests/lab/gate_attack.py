"""Sends damaged and joined streams through a gate, as sshd would hand them on. Runs in a machine of the lab, from the standard library alone.

Arguments: the file of keys, the number of streams, the dataset below which they go, files of real streams. Prints how many were received.
"""

import os
import random
import re
import subprocess
import sys

INTO = "env LC_ALL=C.UTF-8 sh -c id receive.sh 2048k 60 receive -s -u -x poolferry:receive"
RECORD = 312


def damaged(streams: list[bytes], chance: random.Random) -> bytes:
    """One of the streams with a fault in it, or with another one in its middle or behind it."""
    stream, other = bytearray(chance.choice(streams)), chance.choice(streams)
    at = chance.randrange(len(stream))
    match chance.randrange(12):  # else it stays as it is
        case 0:
            stream[at : at + 1] = b""
        case 1:
            stream[at : at + 4] = chance.randbytes(4)
        case 2:
            at = chance.randrange(min(len(stream), 12 * RECORD))  # in its first records
            stream[at : at + 8] = chance.choice((chance.randbytes(8), b"\0" * 8, b"\xff" * 8))
        case 3:
            return bytes(stream[:at])
        case 4:
            return bytes(stream[:-RECORD]) + other + bytes(stream[-RECORD:])
        case 5:
            return bytes(stream) + other
        case 6:
            return bytes(stream[:at]) + other + bytes(stream[at:])
        case 7:
            del stream[at : at + chance.choice((1, 8, RECORD))]
    return bytes(stream)


def main() -> None:
    """Send them, each into one of a few datasets."""
    keys, count, root, *files = sys.argv[1:]
    (command,) = re.findall(r'^command="(.*)",restrict ', open(keys).read(), re.MULTILINE)  # noqa: SIM115
    line = command.replace('\\"', '"').replace("\\\\", "\\")
    streams = []
    for path in files:
        with open(path, "rb") as file:
            streams.append(file.read())
    received = 0
    for number in range(int(count)):
        chance = random.Random(number)
        dataset = f"{root}/{chance.choice(('photos', f'x{number}', f'y{number % 4}'))}"
        given = {**os.environ, "SSH_ORIGINAL_COMMAND": f"{INTO} {dataset}", "SSH_CONNECTION": "10.0.0.9 1 10.0.0.1 22"}
        ended = subprocess.run(
            ["sh", "-c", line], env=given, input=damaged(streams, chance), capture_output=True, timeout=120, check=False
        )
        received += ended.returncode == 0
    print(received)


if __name__ == "__main__":
    main()
