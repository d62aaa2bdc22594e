//! Reloads with many certificates of which one has changed: what processor time they take, and what they do to the handshakes
//! of the same time.
//!
//!     cargo bench -p courser --bench reload -- --certificates 100000
//!
//! Method. Every certificate has a file and an ECDSA P-256 key of its own, once all of one host and once each of a host of its
//! own. The terminator has one worker and reloads on request. Before each reload one file is replaced, and the next handshake
//! for its name has to show the new certificate. The cost is what the processor clock of the terminator gains, over all its
//! threads; that of its look at the files, which finds them as they were, comes from a check (`reload --dry-run`). Handshakes
//! (TLS 1.3, full, one after the other) are timed in stretches without and with a reload every second, in turn; on two cores
//! client, worker and reload share them, so that the figure with reloads is an upper bound.

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use courser_testkit::{
    Courser, Folder, KeyType, Leaf, OriginServer, TestCa,
    client::{Client, Resume, Version},
};

const RELOADS: usize = 10;

/// Stretches of each kind, and the length of one.
const STRETCHES: usize = 5;
const STRETCH: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    match measure(count()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `--certificates NUMBER`; cargo adds arguments of its own.
fn count() -> usize {
    let mut arguments = env::args().skip_while(|argument| argument != "--certificates").skip(1);
    arguments.next().and_then(|number| number.parse().ok()).unwrap_or(100_000).max(2)
}

fn measure(count: usize) -> io::Result<()> {
    let (folder, origin, ca) = (Folder::new(), OriginServer::echo(), TestCa::new());
    eprintln!("writing {count} certificates");
    write_certificates(&folder, &ca, count);
    println!(
        "{count} certificates, one changed  start-up s  memory MiB  after  reload ms (processor)  waited ms  check ms"
    );
    for layout in [Layout::OneHost, Layout::HostForEach] {
        let mut site = Site::start(&folder, &origin, layout, count);
        site.reloads(&ca)?;
        site.handshakes(&ca)?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    OneHost,
    HostForEach,
}

fn name(number: usize) -> String {
    format!("site-{number}.example")
}

fn write_certificates(folder: &Folder, ca: &TestCa, count: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    let share = count.div_ceil(thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| {
        for chunk in numbers.chunks(share) {
            scope.spawn(|| chunk.iter().for_each(|&number| drop(write(folder, ca, number))));
        }
    });
}

/// Writes another certificate, and returns it.
fn write(folder: &Folder, ca: &TestCa, number: usize) -> Vec<u8> {
    let leaf = Leaf::new(KeyType::EcdsaP256).names([name(number)]);
    let issued = ca.issue(&leaf);
    issued.write_combined(folder, &number.to_string());
    issued.certificate.to_vec()
}

/// A terminator under measurement.
struct Site<'a> {
    folder: &'a Folder,
    courser: Courser,
    control: String,
    layout: Layout,
    count: usize,
    start_up: Duration,
    changed: usize,
}

impl<'a> Site<'a> {
    fn start(folder: &'a Folder, origin: &OriginServer, layout: Layout, count: usize) -> Self {
        let config = folder.write("courser.toml", configuration(folder, origin, layout, count));
        let control = folder.join("control.sock").display().to_string();
        let setup = Courser::setup(env!("CARGO_BIN_EXE_courser")).config(&config);
        let setup =
            setup.args(["--log", "off", "--workers", "1", "--no-reload-on-change", "--control", &control]);
        let begun = Instant::now();
        let courser = setup.start();
        Self { folder, courser, control, layout, count, start_up: begun.elapsed(), changed: 0 }
    }

    fn reloads(&mut self, ca: &TestCa) -> io::Result<()> {
        let before = self.courser.memory().pss;
        let (mut costs, mut waits, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RELOADS {
            let written = self.change(ca);
            let (cost, wait) = self.cost(&["reload"])?;
            costs.push(cost);
            waits.push(wait);
            self.shows(&written)?;
            checks.push(self.cost(&["reload", "--dry-run"])?.0);
        }
        let layout = match self.layout {
            Layout::OneHost => "all of one host",
            Layout::HostForEach => "each of its own host",
        };
        println!(
            "{layout:32}{:12.2}{:12.1}{:7.1}{:23.0}{:11.0}{:10.0}",
            self.start_up.as_secs_f64(),
            mib(before),
            mib(self.courser.memory().pss),
            median(&mut costs) * 1e3,
            median(&mut waits) * 1e3,
            median(&mut checks) * 1e3,
        );
        Ok(())
    }

    fn handshakes(&mut self, ca: &TestCa) -> io::Result<()> {
        let [mut quiet, mut reloading] = [Vec::new(), Vec::new()];
        for _ in 0..STRETCHES {
            quiet.extend(self.stretch(&AtomicBool::new(false))?);
            let ends = AtomicBool::new(false);
            self.change(ca);
            let (number, control, count) = (self.changed, self.control.clone(), self.count);
            let times = thread::scope(|scope| {
                let reloader = scope.spawn(|| {
                    let mut reloads = 0;
                    while !ends.load(Ordering::Relaxed) {
                        write(self.folder, ca, (number + reloads) % count);
                        run(&control, &["reload"])?;
                        reloads += 1;
                        thread::sleep(Duration::from_secs(1));
                    }
                    io::Result::Ok(())
                });
                let times = self.stretch(&ends);
                ends.store(true, Ordering::Relaxed);
                reloader.join().expect("reloading does not panic")?;
                times
            })?;
            reloading.extend(times);
        }
        for (title, mut times) in [("without reloads", quiet), ("a reload each second", reloading)] {
            times.sort_unstable();
            let at = |permille: usize| times[times.len() * permille / 1000].as_secs_f64() * 1e6;
            println!(
                "    handshakes {title}: {} p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us",
                times.len(),
                at(500),
                at(990),
                at(999)
            );
        }
        Ok(())
    }

    /// The times of handshakes, one after the other.
    fn stretch(&self, ends: &AtomicBool) -> io::Result<Vec<Duration>> {
        let client = self.client();
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < STRETCH && !ends.load(Ordering::Relaxed) {
            let number = times.len() * 99_991 % self.count;
            let begin = Instant::now();
            let connection = client.for_name(&name(number)).connect()?;
            times.push(begin.elapsed());
            connection.close()?;
        }
        Ok(times)
    }

    fn client(&self) -> Client {
        Client::new(self.courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never)
    }

    /// Replaces a certificate.
    fn change(&mut self, ca: &TestCa) -> Vec<u8> {
        self.changed = (self.changed + 7919) % self.count;
        write(self.folder, ca, self.changed)
    }

    /// Processor time of the terminator for a command, and the time that it took, in seconds.
    fn cost(&self, command: &[&str]) -> io::Result<(f64, f64)> {
        let (begin, before) = (Instant::now(), self.courser.cpu_time());
        run(&self.control, command)?;
        let waited = begin.elapsed().as_secs_f64();
        Ok((self.courser.cpu_time().saturating_sub(before).as_secs_f64(), waited))
    }

    /// Checks that a client gets what the file has.
    fn shows(&self, written: &[u8]) -> io::Result<()> {
        let connection = self.client().for_name(&name(self.changed)).connect()?;
        let served = connection.handshake_info().certificate.unwrap_or_else(|| Vec::new().into());
        match written == &served[..] {
            true => connection.close(),
            false => Err(io::Error::other("the reload did not bring the new certificate")),
        }
    }
}

fn run(control: &str, command: &[&str]) -> io::Result<()> {
    let mut asked = Command::new(env!("CARGO_BIN_EXE_courser"));
    let done = asked.args(command).args(["--control", control]).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

fn configuration(folder: &Folder, origin: &OriginServer, layout: Layout, count: usize) -> String {
    let file = |number: usize| format!("{:?}", folder.join(&format!("{number}.pem")).display().to_string());
    let mut text = format!("[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"{}\"\n", origin.backend());
    match layout {
        Layout::OneHost => {
            let files: Vec<String> = (0..count).map(file).collect();
            text += &format!("cert = [\n{}\n]\n", files.join(",\n"));
        }
        Layout::HostForEach => {
            text += &format!("cert = [{}]\n", file(0));
            for number in 1..count {
                let (name, file) = (name(number), file(number));
                text += &format!("[[listener.host]]\nnames = [{name:?}]\ncert = [{file}]\n");
            }
        }
    }
    text
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}
