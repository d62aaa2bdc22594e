#!/usr/bin/env python3
# A successor that keeps to the protocol of upgrades up to a message of its own, and then misbehaves.
# Environment: UPTO, the messages that it says before; AS, what it does then.
import json, os, signal, socket, sys
if os.environ.get("COURSER_PREDECESSOR") != str(os.getppid()):
    sys.exit("not started as a successor")
channel = socket.socket(fileno=0)
upto, then = int(os.environ["UPTO"]), os.environ["AS"]
said = 0
def say(message):
    global said
    if said == upto:
        if then == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if then == "hang":
            signal.pause()
        if then == "babble":
            channel.send(b"hello?")
            signal.pause()
        if then == "refuse":
            channel.send(json.dumps({"message": "failed", "exit_code": 2, "why": "I do not want to"}).encode())
            sys.exit(2)
    said += 1
    channel.send(json.dumps(message).encode())
def hear():
    bytes, descriptors, _, _ = socket.recv_fds(channel, 1 << 17, 253)
    if not bytes:
        sys.exit("the channel is closed")
    return json.loads(bytes), descriptors
protocol = 1 + (then == "newer")
say({"message": "hello", "protocol": protocol, "version": "9.9.9"})
sockets, _ = hear()
names = sockets["names"][1:] if then == "lose" else sockets["names"]
say({"message": "sockets", "names": names, "more": False})
hear()
say({"message": "memory"})
hear()
say({"message": "process", "fleet": None, "control": None, "admin": [], "old": []})
say({"message": "ready", "sockets": [], "control": False, "admin": []})
hear()
say({"message": "serves"})
signal.pause()
