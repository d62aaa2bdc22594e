"""Makes messages_v2.txt with pyca/cryptography: the messages, written a second time by the documentation alone."""
import hashlib
import hmac
import pathlib
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

NOW, FLEET, EPOCH = 1_800_000_000, b"\x42" * 8, 1000
HERE = pathlib.Path(__file__).parent
SECRET = bytes.fromhex((HERE.parents[3] / "courser-session" / "tests" / "it" / "golden" / "message_secret_v1.hex").read_text())
NEW, DELETE, GET, FOUND, MISSING, WARM_UP, PART, HEARTBEAT, CHALLENGE, PROOF, DOMAIN_CHECK, ACKNOWLEDGED = range(1, 13)
BOOT = struct.pack(">Q", NOW * 1000 - 1000 + 1) + b"\x01" * 8
START = 0xFFFFFFFF
LAST_TO_ALL = struct.pack(">Q", 1)

members = {name: hashlib.sha256(name.encode()).digest()[:8] for name in "ab"}
lines, sent = [], {}


def send(name, to, kind, at, content):
    count = sent[name, to is not None] = sent.get((name, to is not None), 0) + 1
    sequence = struct.pack(">Q", count | (to is not None) << 63)
    header = b"CRSR" + bytes([2, kind]) + FLEET + struct.pack(">Q", EPOCH) + members[name] + BOOT + sequence
    key = HKDFExpand(SHA256(), 32, b"courser message key 2" + members[name] + BOOT).derive(SECRET)
    plaintext = struct.pack(">Q", NOW * 1000 + at) + content
    sealed = AESGCMSIV(key).encrypt(b"\0" * 4 + sequence, plaintext, header + (members[to] if to else b"\0" * 8))
    lines.append(f"{name} {'one' if to else 'all'} {(header + sealed).hex()}")


def policy(*parts):
    fields = b"".join(struct.pack(">Q", len(field)) + field for part in parts for field in part)
    return hashlib.sha256(fields).digest()


def ident(number):
    return b"\x20" + bytes([number] * 32)


def sessions(*numbers):
    each = [ident(number) + struct.pack(">QQH", NOW, NOW + 7200, 5) + b"state" for number in numbers]
    return b"\0" + bound_to + b"".join(each)


def heartbeat(name, *counts):
    return bytes([len(name)]) + name.encode() + struct.pack(">QQQ", *counts)


def proof(asked_by, asked):
    random = members[asked_by] + b"\x01" * 24
    return hmac.digest(random, members[asked] + BOOT + struct.pack(">Q", 0), "sha256") + LAST_TO_ALL


bound_to = policy(
    (b"courser policy, state format", struct.pack(">H", 1)),
    (b"listener", b"public"),
    (b"virtual host", b"example.org"),
    (b"client-auth", b"none"),
)
send("a", None, HEARTBEAT, 0, heartbeat("a", 0, 0, 0))
send("b", None, HEARTBEAT, 0, heartbeat("b", 0, 0, 0))
send("a", "b", CHALLENGE, 0, members["b"] + BOOT + proof("a", "b"))
send("b", "a", CHALLENGE, 0, members["a"] + BOOT + proof("b", "a"))
send("a", "b", PROOF, 0, members["b"] + BOOT + proof("b", "a"))
send("b", "a", PROOF, 0, members["a"] + BOOT + proof("a", "b"))
send("a", None, NEW, 3, sessions(1))
send("a", None, DELETE, 4, struct.pack(">Q", NOW + 7200 + 60) + ident(2))
send("b", None, GET, 5, ident(3) + ident(4))
send("a", "b", FOUND, 5, sessions(3))
send("a", "b", MISSING, 5, ident(4))
for at in (2000, 3100):
    send("a", None, HEARTBEAT, at, heartbeat("a", 2, 1, 0))
    send("b", None, HEARTBEAT, at, heartbeat("b", 2, 0, 2))
send("b", "a", WARM_UP, 3100, struct.pack(">Q", START))
send("a", "b", PART, 3100, struct.pack(">QQB", START, 0, 3) + sessions(3, 1))
digest = b"\x07" * 32
send("a", None, DOMAIN_CHECK, 3200, b"\x0cshop.example" + digest + struct.pack(">Q", NOW + 600))
send("b", "a", ACKNOWLEDGED, 3200, digest)
(HERE / "messages_v2.txt").write_text("\n".join(lines) + "\n")
