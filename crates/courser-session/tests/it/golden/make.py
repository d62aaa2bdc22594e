"""Makes the files beside it with pyca/cryptography: the formats, written a second time by the documentation alone."""
import hashlib
import pathlib
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NOW, NONCE, ID, STATE = 1_800_000_000, bytes([7] * 12), bytes([9] * 32), b"state"
FLEET, SECRET, EPOCH, SECONDS, PAST = b"\x42" * 8, b"\x42" * 32, 1000, 3600, 2


def derive(epoch, label, length):
    return HKDF(SHA256(), length, b"courser fleet 1" + FLEET, label).derive(secrets[epoch])


def seal(epoch, label, bound_to, plaintext):
    keys = derive(epoch, label, 48)
    header = b"\x01" + keys[:16]
    return header + NONCE + AESGCMSIV(keys[16:]).encrypt(NONCE, plaintext, header + bound_to)


def policy(*parts):
    fields = b"".join(struct.pack(">Q", len(field)) + field for part in parts for field in part)
    return hashlib.sha256(fields).digest()


def write(name, text):
    pathlib.Path(__file__).with_name(name).write_text(text + "\n")


secrets = [SECRET]
for epoch in range(EPOCH):
    secrets.append(derive(epoch, b"next", 32))

common = [f"fleet = {FLEET.hex()}", f"epoch-seconds = {SECONDS}", f"origin = {NOW - EPOCH * SECONDS}"]
write("fleet.key", "\n".join([
    "# The secret of a courser fleet: who can read this file can open the sessions of all its hosts.",
    "# Copy it to each of them, readable for the service alone.",
    "format = courser-fleet-key-1", *common, f"secret = {SECRET.hex()}",
]))
past = [
    f"past = {epoch} {derive(epoch, b'ticket key', 48).hex()} {derive(epoch, b'vault key', 48).hex()}"
    for epoch in range(EPOCH - PAST, EPOCH)
]
write("fleet.state", "\n".join([
    "# The state of a courser fleet: who can read this file can open its sessions from this epoch on.",
    "# The service replaces it when the epoch ends. Do not keep copies: they undo that.",
    "format = courser-fleet-state-1", *common, f"epoch = {EPOCH}", f"secret = {secrets[EPOCH].hex()}",
    f"previous-message-secret = {derive(EPOCH - 1, b'message secret', 32).hex()}", *past,
]))
write("message_secret_v1.hex", derive(EPOCH, b"message secret", 32).hex())

bound_to = policy(
    (b"courser policy, state format", struct.pack(">H", 1)),
    (b"listener", b"public"),
    (b"virtual host", b"example.org"),
    (b"client-auth", b"none"),
)
times = struct.pack(">QQ", NOW, NOW + 7200)
write("ticket_v1.hex", seal(EPOCH, b"ticket key", b"", STATE + times + bound_to).hex())

session = bytes([len(ID)]) + ID + bound_to + times + struct.pack(">H", len(STATE)) + STATE
write("value_v1.hex", seal(EPOCH, b"vault key", b"value" + ID, session).hex())
write("name_v1.hex", hashlib.sha256(b"courser session name 1" + ID).hexdigest())
record = seal(EPOCH, b"vault key", b"record", session)
write("sessions_v1.hex", (b"courser sessions 1\n" + struct.pack(">I", len(record)) + record).hex())
