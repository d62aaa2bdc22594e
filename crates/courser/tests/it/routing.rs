//! Clients that are routed by their ClientHello: relayed as they came, terminated, or refused.

mod rules;
mod sessions;
mod sides;
mod transparency;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use courser_testkit::{Courser, Folder, Process, free_port, require};

use crate::stage::{courser, eventually};

/// A terminator with this configuration; `LISTEN` in it stands for a free port.
fn serve(folder: &Folder, toml: &str) -> Courser {
    let sockets = toml.matches("LISTEN").count();
    let text = format!("log = 'json'\n{}", toml.replace("LISTEN", "listen = '127.0.0.1:0'"));
    courser().config(&folder.write("courser.toml", text)).sockets(sockets).start()
}

/// A listener that relays every client to `backend`.
fn relay_to(folder: &Folder, backend: &str) -> Courser {
    let pool =
        format!("[pool.all]\nservers = '{backend}'\n[[listener]]\nLISTEN\nroute = {{ relay = 'all' }}\n");
    serve(folder, &format!("workers = 1\n{pool}"))
}

/// nginx with a TLS server for each certificate, which answers with this text and has a page of a megabyte at `/large`.
fn nginx(folder: &Folder, servers: &[(&Path, &str)]) -> Option<(Process, Vec<SocketAddr>)> {
    let program = require("nginx")?;
    let addresses: Vec<SocketAddr> =
        servers.iter().map(|_| SocketAddr::from(([127, 0, 0, 1], free_port()))).collect();
    let place = folder.path().display();
    folder.write("large", courser_testkit::body(1 << 20));
    let server = |((certificate, text), address): (&(&Path, &str), &SocketAddr)| {
        let file = certificate.display();
        format!(
            "server {{ listen {address} ssl http2; ssl_certificate {file}; ssl_certificate_key {file};
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:{}:1m;
  location / {{ default_type text/html; return 200 '{text}'; }}
  location /large {{ root {place}; }} }}\n",
            address.port()
        )
    };
    let servers: String = servers.iter().zip(&addresses).map(server).collect();
    let configuration = format!(
        "daemon off; master_process off; pid {place}/nginx.pid; error_log stderr;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {place}/a; proxy_temp_path {place}/b; fastcgi_temp_path {place}/c;
  uwsgi_temp_path {place}/d; scgi_temp_path {place}/e;
  {servers}
}}"
    );
    let file = folder.write("nginx.conf", configuration);
    let process = Process::start(Command::new(program).arg("-p").arg(folder.path()).arg("-c").arg(file));
    let listens = |address: &SocketAddr| TcpStream::connect(address).is_ok();
    eventually("nginx listens", || addresses.iter().all(listens));
    Some((process, addresses))
}

/// What one connection carried: from the client, and to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Carried {
    upward: Vec<u8>,
    downward: Vec<u8>,
}

/// A wire in front of a server that stores what it carries.
struct Tap {
    address: SocketAddr,
    carried: Arc<Mutex<Vec<Arc<Mutex<Carried>>>>>,
}

impl Tap {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let carried = Arc::<Mutex<Vec<Arc<Mutex<Carried>>>>>::default();
        let all = Arc::clone(&carried);
        thread::spawn(move || {
            for client in listener.incoming() {
                let one = Arc::<Mutex<Carried>>::default();
                all.lock().unwrap().push(Arc::clone(&one));
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let up = Arc::clone(&one);
                thread::spawn(move || copy(&from, &to, |bytes| up.lock().unwrap().upward.extend(bytes)));
                thread::spawn(move || {
                    copy(&server, &client, |bytes| one.lock().unwrap().downward.extend(bytes));
                });
            }
        });
        Self { address, carried }
    }

    /// What each connection has carried, in the order of their first bytes.
    fn carried(&self) -> Vec<Carried> {
        let all = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        let mut carried: Vec<_> = all.iter().map(|one| one.lock().unwrap().clone()).collect();
        carried.sort_by(|a, b| a.upward.cmp(&b.upward));
        carried
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, mut store: impl FnMut(&[u8])) {
    let mut bytes = [0; 16384];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        store(&bytes[..read]);
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A ClientHello as a browser or a tool sends it.
pub(crate) fn captured(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../courser-wire/tests/captured");
    std::fs::read(folder.join(name).with_extension("bin")).unwrap()
}

pub(crate) fn read_all(mut socket: &TcpStream) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    socket.read_to_end(&mut received)?;
    Ok(received)
}
