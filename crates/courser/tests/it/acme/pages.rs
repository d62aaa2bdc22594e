//! A CA that lists an account's orders on empty pages without an end, as Pebble cannot: a stand-in in Python that speaks just as
//! much of ACME as leads there.

use std::fs;
use std::process::Command;

use courser_testkit::{Folder, KeyType, Leaf, Process, TestCa, free_port, require};

use super::orders::Orders;

/// It does not answer the first order: whoever asked for it looks for it among those of the account.
const ENDLESS_CA: &str = r#"
import http.server, json, ssl, sys
port, chain, key = int(sys.argv[1]), sys.argv[2], sys.argv[3]
base, pages, orders = f"https://localhost:{port}", 0, 0
class Ca(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self): self.answer(200, {})
    def do_GET(self):
        self.answer(200, {"newNonce": base + "/nonce", "newAccount": base + "/accounts", "newOrder": base + "/order"})
    def do_POST(self):
        global pages, orders
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/accounts":
            self.answer(201, {"status": "valid"}, Location=base + "/account")
        elif self.path == "/account":
            self.answer(200, {"status": "valid", "orders": base + "/pages/0"})
        elif self.path.startswith("/pages/"):
            pages += 1
            self.answer(200, {"orders": []}, Link=f'<{base}/pages/{pages}>;rel="next"')
        elif self.path == "/order":
            orders += 1
            print(f"order {orders} after {pages} pages", flush=True)
            if orders > 1:
                self.answer(403, {"type": "urn:ietf:params:acme:error:unauthorized", "detail": "no"})
    def answer(self, status, body, **headers):
        body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name, value)
        self.send_header("Replay-Nonce", "bm9uY2U")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def log_message(self, *what): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Ca)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", flush=True)
server.serve_forever()
"#;

#[test]
fn a_ca_that_lists_empty_pages_without_end_keeps_nobody_from_ordering() {
    let Some(python) = require("python3") else { return };
    let (folder, ca, port) = (Folder::new(), TestCa::new(), free_port());
    let pair = ca.issue(&Leaf::new(KeyType::EcdsaP256).names(["localhost"])).write_pair(&folder, "directory");
    let mut command = Command::new(python);
    command.args(["-c", ENDLESS_CA, &port.to_string()]).arg(&pair.chain).arg(&pair.key);
    let server = Process::start(&mut command);
    let said = |text: &str| {
        let is_it = |line: &&String| line.starts_with(text);
        server.wait_stdout(text, |lines| lines.iter().find(is_it).cloned())
    };
    said("listening");
    let orders = Orders::at("shop.example", free_port(), &format!("https://localhost:{port}/directory"));
    fs::copy(ca.write_root(&folder), orders.authority()).unwrap();
    let courser = orders.start("");
    assert_eq!(said("order 1"), "order 1 after 0 pages");
    courser.wait_stderr_line("not ordered");
    orders.run(&["acme", "order"]);
    // As many as docs/limits.md says.
    assert_eq!(said("order 2"), "order 2 after 30 pages");
}
