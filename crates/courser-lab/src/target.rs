//! Targets: terminators that are installed on this machine, started with equal settings, and stopped whatever happens.
//!
//! What each is called, where its program is, what its configuration looks like and what it cannot do is data
//! (`targets/*.toml`). One neutral specification ([`Wanted`]) makes the configuration of every target. A target runs
//! under a keeper, a process of its own that ends the target when we end, however we end. Nothing here measures, and
//! nothing here decides what is compared.

mod definition;
mod installed;

mod certificate;
mod fleet;
mod folder;
mod messages;
mod plan;
mod template;

mod family;
mod keeper;

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use courser_record::lab::File;

pub use certificate::{Certificate, KeyKind, certificate};
pub use definition::{Definition, Role, catalogue, source};
pub use family::{end_all as end_family, reap};
pub use fleet::Fleet;
pub use installed::Installed;
pub use keeper::{ENDED, KeptCommand, PIDS, Spec};
pub use messages::Sent;

use keeper::Keeper;
use plan::{Plan, plan};

/// What is compared between targets of the tickets of a full handshake: few programs have a setting for their number.
pub(crate) const TICKETS: &str = "tickets per full handshake";

/// How long a target may take until it accepts connections.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The neutral specification: what is asked of every target alike.
#[derive(Clone, Debug)]
pub struct TargetSpec {
    /// TLS towards clients; none for clear text.
    pub tls: Option<Tls>,
    /// What holds where nothing is asked.
    pub preset: Preset,
    /// Workers: threads or processes, as the target has them.
    pub workers: usize,
    /// The processors that it may use; empty for all.
    pub cpus: Vec<usize>,
    /// Where what it took from clients goes.
    pub backends: Vec<SocketAddr>,
    /// Whether backends speak TLS. Their certificate is not verified.
    pub backend_tls: bool,
    /// Whether what clients send is HTTP/1.1: there are targets that understand nothing else.
    pub http: bool,
    /// Whether clients send several requests over a connection. Programs that forward bytes then use one backend
    /// connection for all of them, and otherwise one for each; those that understand HTTP are set up to do the same.
    pub keep_alive: bool,
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: u32,
    /// Several copies that share what it takes to resume each other's sessions; none for one by itself.
    pub fleet: Option<Fleet>,
    /// A folder of its own: it is made, and everything that the target writes is in it.
    pub folder: PathBuf,
}

/// TLS towards clients.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Versions: `1.0` to `1.3`.
    pub versions: Vec<String>,
    /// Cipher suites by their IANA names, the best first; empty for the program's own.
    pub suites: Vec<String>,
    /// Groups (`X25519`, `P-256`, `P-384`, `X25519MLKEM768`), the best first; empty for the program's own.
    pub groups: Vec<String>,
    /// Application protocols to agree on (ALPN), the best first; empty for the program's own.
    pub alpn: Vec<String>,
    /// At least one.
    pub certificates: Vec<Certificate>,
    /// Whether session tickets are given and taken.
    pub tickets: bool,
    /// Sessions that the cache holds; none for no cache.
    pub session_cache: Option<u32>,
}

/// What holds for everything that the specification does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The defaults of the package.
    Stock,
    /// What the program's documentation recommends for load.
    Tuned,
}

/// A target that accepts connections. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Running {
    /// Where it accepts connections.
    pub address: SocketAddr,
    /// Where the other hosts of its fleet do.
    pub others: Vec<SocketAddr>,
    /// The root of the family of processes whose processor time is the target's.
    /// Of a chain or a fleet it is the keeper, which has all and sleeps meanwhile.
    pub pid: u32,
    /// The program.
    pub program: PathBuf,
    /// Its version, as it says.
    pub version: String,
    /// Its TLS library, as it says.
    pub library: Option<String>,
    /// The command that started it; of a chain or a fleet the next after `;`.
    pub command: Vec<String>,
    /// The configuration files that were written for it.
    pub files: Vec<File>,
    /// What a reader has to know: where the target could not be set up quite as it was wanted.
    pub remarks: Vec<String>,
    /// How its hosts are asked what they told each other; empty where they do not.
    asks: Vec<messages::Ask>,
    /// Ends it.
    keeper: Keeper,
}

/// Why a target does not run. Each is a whole sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// It is not installed.
    Missing(String),
    /// It cannot do what is wanted.
    Cannot(String),
    /// It should have started, and did not.
    Failed(String),
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Missing(why) | Self::Cannot(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for NotStarted {}

/// Starts a target on a free port of 127.0.0.1, and waits until it accepts connections.
///
/// # Errors
/// When it is not installed, cannot do what is wanted, or does not come up.
pub fn start(definition: &Definition, spec: &TargetSpec) -> Result<Running, NotStarted> {
    if definition.role == Role::Direct {
        return direct(definition, spec);
    }
    let spec = spec.absolute().map_err(NotStarted::Failed)?;
    let once = || plan(definition, &spec).and_then(|plan| run(plan, &spec).map_err(NotStarted::Failed));
    match once() {
        // Somebody was faster; the second try has another port.
        Err(NotStarted::Failed(why)) if why.to_lowercase().contains("in use") => once(),
        other => other,
    }
}

/// An origin of its own is the target: it has the target's cores, and clients reach it with nothing between.
fn direct(definition: &Definition, spec: &TargetSpec) -> Result<Running, NotStarted> {
    if spec.tls.is_some() || spec.backend_tls {
        let why = "it is the way to the origin without TLS";
        return Err(NotStarted::Cannot(format!("{} cannot: {why}", definition.title)));
    }
    let (_, running) = origin(1, &spec.cpus, &spec.folder).map_err(NotStarted::Failed)?;
    Ok(running)
}

/// Starts this program's own `origin` with `count` listeners on `cpus`, kept as targets are. `folder` is made.
///
/// # Errors
/// When it does not come up, in a sentence.
pub fn origin(count: usize, cpus: &[usize], folder: &Path) -> Result<(Vec<SocketAddr>, Running), String> {
    let addresses =
        plan::free_addresses(count).map_err(|why| format!("no free port for the origin: {why}"))?;
    let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let pin = if cpus.is_empty() { Vec::new() } else { vec!["--cpus".to_owned(), list.join(",")] };
    let listen = addresses.iter().flat_map(|address| ["--listen".to_owned(), address.to_string()]);
    let arguments = std::iter::once("origin".to_owned()).chain(listen).chain(pin).collect();
    let running = ourselves("origin", arguments, &addresses, cpus, folder)?;
    Ok((addresses, running))
}

/// Starts this program's own `delay` to `to` on `cpus`, supervised like a target. `folder` is made.
///
/// # Errors
/// When it does not come up, in a sentence.
pub fn delay(to: SocketAddr, rtt: Duration, cpus: &[usize], folder: &Path) -> Result<Running, String> {
    let addresses =
        plan::free_addresses(1).map_err(|why| format!("no free port for the added delay: {why}"))?;
    let words = ["delay", "--listen", &addresses[0].to_string(), "--to", &to.to_string(), "--rtt"];
    let words = words.into_iter().map(str::to_owned).chain([format!("{}us", rtt.as_micros())]);
    let pin = cpus.first().into_iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]);
    ourselves("delay", words.chain(pin).collect(), &addresses, cpus, folder)
}

/// Starts this program with other arguments, kept as targets are.
fn ourselves(
    name: &str,
    arguments: Vec<String>,
    addresses: &[SocketAddr],
    cpus: &[usize],
    folder: &Path,
) -> Result<Running, String> {
    let folder = &absolute(folder)?;
    folder::make_folder(folder)?;
    let command = KeptCommand {
        name: name.into(),
        command: std::iter::once("/proc/self/exe".to_owned()).chain(arguments).collect(),
        environment: Vec::new(),
        folder: folder.to_owned(),
        log: folder.join("output.log"),
    };
    let (pid, keeper) = keep(vec![command.clone()], cpus, folder, addresses)?;
    Ok(Running {
        address: *addresses.first().ok_or_else(|| format!("{name} without a listener is none"))?,
        others: Vec::new(),
        pid,
        program: std::env::current_exe().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").into(),
        library: None,
        command: command.command,
        files: Vec::new(),
        remarks: Vec::new(),
        asks: Vec::new(),
        keeper,
    })
}

impl TargetSpec {
    /// The same, in words that hold wherever a program runs.
    fn absolute(&self) -> Result<Self, String> {
        let mut whole = self.clone();
        whole.folder = absolute(&self.folder)?;
        for one in whole.tls.iter_mut().flat_map(|tls| &mut tls.certificates) {
            for path in [&mut one.chain, &mut one.key, &mut one.combined] {
                *path = absolute(path)?;
            }
        }
        Ok(whole)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|why| format!("{}: {why}", path.display()))
}

impl Running {
    /// Why it has ended, with the last lines of what it printed; none while it runs.
    pub fn ended(&mut self) -> Option<String> {
        self.keeper.ended()
    }

    /// What its hosts have told each other since they were started; none when they do not, or do not say.
    pub fn sent(&self) -> Option<Sent> {
        messages::sent(&self.asks)
    }

    /// The process that ends it when we end.
    pub fn keeper(&self) -> u32 {
        self.keeper.pid
    }
}

fn run(plan: Plan, spec: &TargetSpec) -> Result<Running, String> {
    let commands: Vec<Vec<String>> = plan.commands.iter().map(|one| one.command.clone()).collect();
    let (pid, keeper) = keep(plan.commands, &spec.cpus, &spec.folder, &plan.addresses)?;
    let mut remarks = plan.remarks;
    if !spec.cpus.is_empty() && hold_all(&keeper.kept, &spec.cpus) {
        remarks.push(
            "It binds its workers to processors itself, the first ones of the machine; they were moved to the target's.".into(),
        );
    }
    if plan.worker_processes && spec.preset == Preset::Tuned && spec.workers > 1 && !spec.cpus.is_empty() {
        keeper.kept.iter().for_each(|pid| family::spread(*pid, spec.workers, &spec.cpus));
        remarks
            .push("Each of its worker processes was bound to a processor of its own (as by taskset).".into());
    }
    Ok(Running {
        address: plan.addresses[0],
        others: plan.others,
        pid,
        program: plan.installed.program,
        version: plan.installed.version,
        library: plan.installed.library,
        command: commands.join(&";".to_owned()),
        files: plan.files,
        remarks,
        asks: plan.asks,
        keeper,
    })
}

/// Holds all of them to these processors, and says whether any was elsewhere.
fn hold_all(kept: &[u32], cpus: &[usize]) -> bool {
    kept.iter().filter(|pid| family::hold(**pid, cpus)).count() > 0
}

/// Has commands kept, and waits until they accept connections. Gives the root of the family that they are.
fn keep(
    commands: Vec<KeptCommand>,
    cpus: &[usize],
    folder: &Path,
    addresses: &[SocketAddr],
) -> Result<(u32, Keeper), String> {
    let spec = Spec { cpus: cpus.to_vec(), commands };
    let text = serde_json::to_string_pretty(&spec).expect("a document of plain strings");
    let path = folder.join("keep.json");
    folder::write(&path, &text)?;
    let keeper = Keeper::start(&path)?;
    wait_until_accepting(&keeper, addresses)?;
    let root = if let [one] = keeper.kept[..] { one } else { keeper.pid };
    Ok((root, keeper))
}

/// There is no way of saying "ready" that all programs share, so connecting is tried until it succeeds.
fn wait_until_accepting(keeper: &Keeper, addresses: &[SocketAddr]) -> Result<(), String> {
    let begun = Instant::now();
    for address in addresses {
        while !accepts(*address) {
            if let Some(why) = keeper.ended() {
                return Err(why);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!(
                    "nothing accepts connections at {address} after {} s",
                    PATIENCE.as_secs()
                ));
            }
            thread::sleep(PAUSE);
        }
    }
    // One that has ended did not accept these.
    keeper.ended().map_or(Ok(()), Err)
}

/// A socket that connects to itself, which a client on the machine may do when nobody listens, is no server.
fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != address))
}
