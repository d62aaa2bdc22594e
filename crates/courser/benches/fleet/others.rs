//! The other side of what is measured, in a process of its own so that its cost is not counted: this program again.
//!
//! It is told what to do by lines on its standard input and answers each with one line. It ends with its input.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use courser_sharing::FleetHandle;
use courser_testkit::tools::{cores, pin};
use socket2::{Domain, Protocol, Socket, Type};

use crate::hosts::{self, Maker};

/// The first argument of the program when it is the other side.
const ROLE: &str = "--other-side";

/// How long datagrams lie before a sink takes them, all at once: to wake it for each would be the sender's cost.
const REST: Duration = Duration::from_millis(5);

/// A process that is the other side.
pub(crate) struct Others {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Others {
    /// Sockets at 127.0.0.2 and up that take datagrams and forget them; with their addresses.
    pub(crate) fn sinks(count: u8) -> io::Result<(Self, Vec<SocketAddr>)> {
        let (others, addresses) = Self::start(&["sinks", &count.to_string()])?;
        let addresses = addresses.split(' ').map(|address| address.parse().map_err(io::Error::other));
        Ok((others, addresses.collect::<io::Result<_>>()?))
    }

    /// One such socket in a multicast group on the loopback interface.
    pub(crate) fn sink_in(group: SocketAddr) -> io::Result<Self> {
        Ok(Self::start(&["group", &group.to_string()])?.0)
    }

    /// Members at 127.0.0.2 and up that tell `peer` of their sessions. `key` is a file.
    pub(crate) fn hosts(count: u8, peer: SocketAddr, key: &str) -> io::Result<Self> {
        Ok(Self::start(&["hosts", &count.to_string(), &peer.to_string(), key])?.0)
    }

    fn start(arguments: &[&str]) -> io::Result<(Self, String)> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(ROLE).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let mut others = Self { child, stdin, stdout };
        let ready = others.answer()?;
        Ok((others, ready))
    }

    /// How many datagrams the sinks have taken.
    pub(crate) fn taken(&mut self) -> io::Result<u64> {
        // What lies in the sockets still is taken first.
        thread::sleep(4 * REST);
        self.ask("")
    }

    /// Lets the members make so many sessions a second, together; says how many they made.
    pub(crate) fn make(&mut self, rate: u32, length: Duration) -> io::Result<u64> {
        self.ask(&format!("{rate} {}", length.as_millis()))
    }

    fn ask(&mut self, line: &str) -> io::Result<u64> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{line}")?;
        self.answer()?.parse().map_err(io::Error::other)
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line)? {
            0 => Err(io::Error::other("the other side has ended")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Err(error) = self.child.wait() {
            eprintln!("the other side: {error}");
        }
    }
}

/// Runs as the other side if the program was started for that.
pub(crate) fn run_if_asked() -> Option<io::Result<()>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [role, arguments @ ..] = &arguments[..] else { return None };
    (role == ROLE).then(|| run(arguments))
}

fn run(arguments: &[String]) -> io::Result<()> {
    pin(*cores()?.last().ok_or(io::ErrorKind::NotFound)?)?;
    let number = |text: &str| text.parse::<u8>().map_err(io::Error::other);
    let address = |text: &str| text.parse::<SocketAddr>().map_err(io::Error::other);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sinks", count] => {
            let sockets = (1..=number(count)?).map(|number| UdpSocket::bind(hosts::loopback(number)));
            drain(&sockets.collect::<io::Result<Vec<_>>>()?)
        }
        ["group", group] => drain(&[in_group(address(group)?)?]),
        ["hosts", count, peer, key] => make_sessions(number(count)?, address(peer)?, key),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn in_group(group: SocketAddr) -> io::Result<UdpSocket> {
    let SocketAddr::V4(v4) = group else { return Err(io::ErrorKind::InvalidInput.into()) };
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&group.into())?;
    socket.join_multicast_v4(v4.ip(), &Ipv4Addr::LOCALHOST)?;
    Ok(socket.into())
}

fn drain(sockets: &[UdpSocket]) -> io::Result<()> {
    let addresses: Vec<_> =
        sockets.iter().map(|socket| Ok(socket.local_addr()?.to_string())).collect::<io::Result<_>>()?;
    for socket in sockets {
        socket.set_nonblocking(true)?;
    }
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        // It ends with the process: `main` does not wait for it.
        scope.spawn(|| {
            loop {
                sockets.iter().for_each(|socket| take_all(socket, &taken));
                thread::sleep(REST);
            }
        });
        let answered = answer(&addresses.join(" "), |_| Ok(taken.load(Ordering::Relaxed)));
        std::process::exit(i32::from(answered.is_err()))
    })
}

fn take_all(socket: &UdpSocket, taken: &AtomicU64) {
    let mut datagram = [0; 2048];
    while socket.recv(&mut datagram).is_ok() {
        taken.fetch_add(1, Ordering::Relaxed);
    }
}

fn make_sessions(count: u8, peer: SocketAddr, key: &str) -> io::Result<()> {
    let hosts = start_all(count, peer, &std::fs::read_to_string(key)?)?;
    let mut maker = Maker::new()?;
    answer("ready", |line| {
        let (rate, length) = line.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
        let rate = rate.parse().map_err(io::Error::other)?;
        let length = Duration::from_millis(length.parse().map_err(io::Error::other)?);
        let mut turns = hosts.iter().cycle();
        let make = || turns.next().into_iter().for_each(|host| host.push(maker.session()));
        let made = hosts::pace(rate, length, make);
        // Sent, too.
        hosts.iter().try_for_each(|host| hosts::status(host).map(drop))?;
        let dropped: u64 = hosts.iter().map(FleetHandle::dropped).sum();
        if dropped > 0 {
            eprintln!(
                "warning: the senders dropped {dropped} sessions so far: they are slower than was asked"
            );
        }
        Ok(made)
    })
}

/// Members at 127.0.0.2 and up that tell `peer` of their sessions.
pub(crate) fn start_all(count: u8, peer: SocketAddr, key: &str) -> io::Result<Vec<FleetHandle>> {
    let start = |number: u8| {
        let socket = hosts::open(hosts::loopback(number), None)?;
        hosts::join(&format!("host-{number}"), socket, vec![peer], key)
    };
    (1..=count).map(start).collect()
}

/// Says `ready`, then answers each line of the input until it ends.
fn answer(ready: &str, mut question: impl FnMut(&str) -> io::Result<u64>) -> io::Result<()> {
    println!("{ready}");
    for line in io::stdin().lines() {
        println!("{}", question(&line?)?);
    }
    Ok(())
}
