# Fetches the origin's page: fetch.py ROOT PORT VERSION CIPHERS
import socket, ssl, sys

root, port, version, ciphers = sys.argv[1:]
context = ssl.create_default_context(cafile=root)
context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
if ciphers:
    context.set_ciphers(ciphers)
plain = socket.create_connection(("127.0.0.1", int(port)), timeout=15)
tls = context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
tls.sendall(b"GET / HTTP/1.0\r\n\r\n")
print(b"".join(iter(lambda: tls.recv(65536), b"")).decode(), tls.version())
tls.unwrap()
