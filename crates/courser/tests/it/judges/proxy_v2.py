"""Reads a PROXY header of version 2 with proxy-protocol and prints what is in it as JSON."""

import hashlib
import json
import pathlib
import sys

import crc32c
import proxyprotocol.tlv
from proxyprotocol.v2 import ProxyProtocolV2

header = pathlib.Path(sys.argv[1]).read_bytes()
# The parser would compute the checksum over the fields in an order of its own; over the bytes as they came it is this.
proxyprotocol.tlv.crc32c_checksum = None
tlvs, checksum = 16 + {0: 0, 1: 12, 2: 36, 3: 216}[header[13] >> 4], None
while tlvs < len(header):
    length = int.from_bytes(header[tlvs + 1 : tlvs + 3], "big")
    if header[tlvs] == 3:
        value = slice(tlvs + 3, tlvs + 7)
        zeroed = header[: tlvs + 3] + bytes(4) + header[tlvs + 7 :]
        checksum = crc32c.crc32c(zeroed) == int.from_bytes(header[value], "big")
    tlvs += 3 + length

result = ProxyProtocolV2().unpack(header)
tlv, tls = result.tlv, result.tlv.ssl


def text(value):
    return None if value is None else value.decode()


def address(pair):
    return pair if pair is None or isinstance(pair, str) else "%s:%d" % pair


def digest(certificate):
    return None if certificate is None else hashlib.sha256(certificate).hexdigest()


print(
    json.dumps(
        {
            "source": address(result.source),
            "destination": address(result.dest),
            "alpn": text(tlv.alpn),
            "authority": tlv.authority,
            "unique_id": text(tlv.unique_id),
            "checksum": checksum,
            "over_tls": tls.has_ssl,
            "on_connection": tls.has_cert_conn,
            "in_session": tls.has_cert_sess,
            "common_name": tls.cn,
            "verified": tls.verified,
            "version": tls.version,
            "cipher": tls.cipher,
            "signature": tls.sig_alg,
            "key": tls.key_alg,
            "group": text(tls.get(0x26)),
            "scheme": text(tls.get(0x27)),
            "client_certificate": digest(tls.get(0x28)),
            "others": {str(kind): tlv[kind].hex() for kind in tlv if kind >= 0xE0},
        }
    )
)
