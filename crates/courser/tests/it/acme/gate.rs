//! What stands between the program and its CA and withholds one request, or its answer. It sees no plaintext: each request has
//! a connection of its own, and the client's second flight is the request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use courser_testkit::PATIENCE;

/// What does not go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// The CA never hears of it.
    Request,
    /// The CA has done what it was asked for, and nobody hears of that.
    Answer,
}

pub(crate) struct Gate {
    port: u16,
    plan: Arc<Plan>,
}

struct Plan {
    server: u16,
    /// Connections until the one that is withheld; none are counted before the first plan.
    left: AtomicUsize,
    withheld: Mutex<Withheld>,
    is_reached: AtomicBool,
}

impl Gate {
    /// In front of this port.
    pub(crate) fn new(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Plan {
            server,
            left: AtomicUsize::new(usize::MAX),
            withheld: Mutex::new(Withheld::Request),
            is_reached: AtomicBool::new(false),
        };
        let plan = Arc::new(plan);
        let gate = Self { port, plan: Arc::clone(&plan) };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let plan = Arc::clone(&plan);
                thread::spawn(move || plan.pass(client));
            }
        });
        gate
    }

    pub(crate) fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// Withholds the `number`th request from now on, counted from 1.
    pub(crate) fn withhold(&self, number: usize, withheld: Withheld) {
        *self.plan.withheld.lock().unwrap() = withheld;
        self.plan.is_reached.store(false, Ordering::SeqCst);
        self.plan.left.store(number, Ordering::SeqCst);
    }

    /// Whether it is withheld now.
    pub(crate) fn is_reached(&self) -> bool {
        self.plan.is_reached.load(Ordering::SeqCst)
    }
}

impl Plan {
    fn pass(&self, mut client: TcpStream) {
        let is_the_one = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        let withheld = is_the_one.then(|| *self.withheld.lock().unwrap());
        if withheld == Some(Withheld::Request) {
            self.is_reached.store(true, Ordering::SeqCst);
            // Until the program is gone.
            let _ = client.read_to_end(&mut Vec::new());
            return;
        }
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server)) else { return };
        let (is_passed, (swallow, swallowed)) = (Arc::new(AtomicBool::new(true)), mpsc::channel());
        let (to_client, from_server, passes) =
            (client.try_clone().unwrap(), server.try_clone().unwrap(), Arc::clone(&is_passed));
        let back = thread::spawn(move || answer(from_server, to_client, &passes, &swallow));
        let (mut server, mut flights, mut buffer) = (server, 0, vec![0; 1 << 16]);
        while let Ok(read @ 1..) = client.read(&mut buffer) {
            flights += 1;
            // The end of the handshake and the request, in one.
            let is_request = flights == 2 && withheld == Some(Withheld::Answer);
            if is_request {
                is_passed.store(false, Ordering::SeqCst);
            }
            if server.write_all(&buffer[..read]).is_err() {
                break;
            }
            if is_request {
                // It answers when it has done what it was asked for.
                swallowed.recv_timeout(PATIENCE).expect("the CA answers");
                self.is_reached.store(true, Ordering::SeqCst);
            }
        }
        let _ = server.shutdown(Shutdown::Both);
        let _ = back.join();
    }
}

/// Shorter than an answer of the CA, and longer than what it sends behind a handshake: its ticket.
const ANSWER: usize = 400;

fn answer(mut server: TcpStream, mut client: TcpStream, is_passed: &AtomicBool, swallow: &mpsc::Sender<()>) {
    let (mut buffer, mut swallowed) = (vec![0; 1 << 16], 0);
    while let Ok(read @ 1..) = server.read(&mut buffer) {
        if !is_passed.load(Ordering::SeqCst) {
            swallowed += read;
            if swallowed > ANSWER {
                let _ = swallow.send(());
            }
        } else if client.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
    let _ = swallow.send(());
    if is_passed.load(Ordering::SeqCst) {
        let _ = client.shutdown(Shutdown::Both);
    }
}
