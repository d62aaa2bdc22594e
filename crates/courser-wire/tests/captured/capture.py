#!/usr/bin/env python3
"""Keeps what a client sends unasked: capture.py OUT -- COMMAND...

Listens on a free port of the loopback, runs COMMAND with {port} replaced by it, never answers, and writes to
OUT what the client had sent when it fell silent.
"""

import argparse
import select
import socket
import subprocess

QUIET_SECONDS = 0.7


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    port = str(listener.getsockname()[1])
    command = [word.replace("{port}", port) for word in args.command]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        listener.settimeout(10)
        connection, _ = listener.accept()
        kept = record(connection)
        with open(args.out, "wb") as out:
            out.write(kept)
        print(args.out, len(kept), "bytes")
    finally:
        client.stdin.close()
        client.terminate()
        client.wait()


def record(connection):
    """What comes until nothing has come for a while."""
    kept = b""
    while select.select([connection], [], [], QUIET_SECONDS)[0]:
        data = connection.recv(65536)
        if not data:
            break
        kept += data
    connection.close()
    return kept


main()
