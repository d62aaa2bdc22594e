//! Many certificates on one address: how long the start takes, what memory they need, and what a handshake costs next
//! to the same with one certificate.
//!
//!     cargo bench -p courser --bench many_certificates -- 100000
//!
//! Method. Every certificate has a file and an ECDSA P-256 key of its own. Both terminators have one worker. Start-up is
//! from the start of the process to its first "listening on", with the files in the kernel's page cache, since they have
//! just been written. Memory is the proportional set size before the first connection. Each connection is a full
//! handshake of TLS 1.3 for the next name in an order that no cache can guess, checked to show the certificate of that
//! name, and the connection to the backend; its cost is what the terminator's processor clock gained. Rounds alternate
//! between the two terminators; the table has the medians.

use std::{
    env, io,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use courser_testkit::{
    Courser, Folder, KeyType, Leaf, OriginServer, TestCa,
    client::{Client, Resume, Version},
};

const ROUNDS: usize = 5;

/// Handshakes in a round.
const HANDSHAKES: usize = 1000;

/// A prime, so that steps of this length visit every name before the first comes again.
const STRIDE: usize = 99_991;

fn main() -> ExitCode {
    let count = env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000).max(2);
    match measure(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(count: usize) -> io::Result<()> {
    let (folder, origin) = (Folder::new(), OriginServer::echo());
    eprintln!("writing {count} certificates");
    let files = write_certificates(&folder, count);
    let start = |files: &[PathBuf]| Server::start(&folder, &origin, files);
    let mut servers = [start(&files[..1]), start(&files)];
    for round in 0..ROUNDS {
        for server in &mut servers {
            server.sample(round)?;
        }
    }
    println!("certificates  start-up s   memory MiB  connection us");
    servers.iter_mut().for_each(Server::print);
    let [one, many] = servers;
    let each = many.memory.saturating_sub(one.memory) / (count - 1) as u64;
    println!("memory per certificate: {:.1} KiB", kib(each));
    Ok(())
}

fn name(number: usize) -> String {
    format!("site-{number}.example")
}

fn write_certificates(folder: &Folder, count: usize) -> Vec<PathBuf> {
    let ca = TestCa::new();
    let write = |number: usize| {
        let leaf = Leaf::new(KeyType::EcdsaP256).names([name(number)]);
        ca.issue(&leaf).write_combined(folder, &number.to_string())
    };
    let numbers: Vec<usize> = (0..count).collect();
    let share = count.div_ceil(thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| {
        let writers: Vec<_> = numbers
            .chunks(share)
            .map(|chunk| scope.spawn(|| chunk.iter().map(|&number| write(number)).collect::<Vec<_>>()))
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("writing does not panic")).collect()
    })
}

/// A terminator under measurement.
struct Server {
    courser: Courser,
    certificates: usize,
    start_up: Duration,
    /// Bytes.
    memory: u64,
    /// Of one handshake, for each round.
    costs: Vec<Duration>,
}

impl Server {
    fn start(folder: &Folder, origin: &OriginServer, files: &[PathBuf]) -> Self {
        let config = folder.write(&format!("{}.toml", files.len()), configuration(origin, files));
        let setup = Courser::setup(env!("CARGO_BIN_EXE_courser")).config(&config).args([
            "--log",
            "off",
            "--workers",
            "1",
        ]);
        let begun = Instant::now();
        let courser = setup.start();
        let start_up = begun.elapsed();
        let memory = courser.memory().pss;
        Self { courser, certificates: files.len(), start_up, memory, costs: Vec::new() }
    }

    fn sample(&mut self, round: usize) -> io::Result<()> {
        let client = Client::new(self.courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never);
        let before = self.courser.cpu_time();
        for handshake in 0..HANDSHAKES {
            let number = (round * HANDSHAKES + handshake) * STRIDE % self.certificates;
            connect(&client, &name(number))?;
        }
        let cost = self.courser.cpu_time().saturating_sub(before);
        self.costs.push(cost / u32::try_from(HANDSHAKES).unwrap_or(u32::MAX));
        Ok(())
    }

    fn print(&mut self) {
        self.costs.sort_unstable();
        println!(
            "{:12}  {:10.2}  {:11.1}  {:13.1}",
            self.certificates,
            self.start_up.as_secs_f64(),
            kib(self.memory) / 1024.0,
            self.costs[self.costs.len() / 2].as_secs_f64() * 1e6,
        );
    }
}

/// Connects, checks that the certificate is the one of `name`, and closes.
fn connect(client: &Client, name: &str) -> io::Result<()> {
    let connection = client.for_name(name).connect()?;
    let certificate = connection.handshake_info().certificate.unwrap_or_else(|| Vec::new().into());
    // In the subjectAltName, a name stands after its length, so that no longer name can be taken for it.
    let length = u8::try_from(name.len()).map_err(io::Error::other)?;
    let wanted = [&[0x82, length], name.as_bytes()].concat();
    if !certificate.windows(wanted.len()).any(|window| window == wanted) {
        return Err(io::Error::other(format!("the certificate is not that of {name}")));
    }
    connection.close()
}

fn configuration(origin: &OriginServer, files: &[PathBuf]) -> String {
    let certs: Vec<String> = files.iter().map(|file| format!("{:?}", file.display().to_string())).collect();
    let (backend, certs) = (origin.backend(), certs.join(",\n"));
    format!("[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"{backend}\"\ncert = [\n{certs}\n]\n")
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}
