"""Makes ticket_v1.hex with pyca/cryptography: the format, written a second time by the documentation alone."""
import hashlib
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NOW, NONCE = 1_800_000_000, bytes([7] * 12)
FLEET, SECRET, EPOCH = b"\x42" * 8, b"\x42" * 32, 1000


def derive(secret, label, length):
    return HKDF(SHA256(), length, b"courser fleet 1" + FLEET, label).derive(secret)


def policy(*parts):
    fields = b"".join(struct.pack(">Q", len(field)) + field for part in parts for field in part)
    return hashlib.sha256(fields).digest()


secret = SECRET
for _ in range(EPOCH):
    secret = derive(secret, b"next", 32)
keys = derive(secret, b"ticket key", 48)
name, key = keys[:16], keys[16:]
bound_to = policy(
    (b"courser policy, state format", struct.pack(">H", 1)),
    (b"listener", b"public"),
    (b"virtual host", b"example.org"),
    (b"client-auth", b"none"),
)
header = b"\x01" + name
plaintext = b"state" + struct.pack(">QQ", NOW, NOW + 7200) + bound_to
print((header + NONCE + AESGCMSIV(key).encrypt(NONCE, plaintext, header)).hex())
