//! A load as a user asks for it: names, numbers and paths, nothing looked up and no file read. [`LoadSpec::plan`] makes
//! the plan of a run from it, [`LoadSpec::to_args`] the command line that means the same.

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use crate::http::{BodyCheck, Expect, ExpectedStatus, Method, Rendered, Request};
use crate::plan::{LoadTarget, Model, Offered, Phases, Plan, Reuse, Sockets, Workload};
use crate::schedule::{Arrivals, Piece, Share};
use crate::tls_options::{BadChoice, ClientTlsOptions, EngineChoice, ReadFile, ResumeChoice};
use crate::url::{Scheme, Url};
use courser_record::CloseMode;

/// How long a connect may take where nothing else is asked for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// One load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSpec {
    /// What is loaded.
    pub url: Url,
    /// More addresses of the service; each connection of a client goes to the next one.
    pub also: Vec<SocketAddr>,
    /// How clients arrive.
    pub load: Load,
    /// Whether arrivals are drawn from a Poisson process.
    pub poisson: bool,
    /// Connections per TLS session; 0: all of a client's.
    pub reuse: u32,
    /// What a connection is for.
    pub work: Work,
    /// What is offered in TLS.
    pub tls: ClientTlsOptions,
    /// How connections are closed.
    pub close: CloseMode,
    /// Sockets of the clients.
    pub sockets: Sockets,
    /// Phases and time limits. The steady phase of a staircase is divided among its steps.
    pub phases: Phases,
    /// Threads of the generator; none: one for each of `cpus`, or one.
    pub threads: Option<u16>,
    /// CPUs to pin threads to.
    pub cpus: Vec<usize>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Share of the schedule of this generator.
    pub share: Option<Share>,
    /// When the run starts; none: now.
    pub start_at: Option<SystemTime>,
    /// The server whose usage is read meanwhile.
    pub server: ServerSpec,
    /// Addresses of the origin that the generator's own loop serves; the caller gives the plan its sockets.
    pub origin: Vec<SocketAddr>,
}

/// How clients arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// A closed loop of this many clients.
    Closed(u64),
    /// Sessions per second.
    Sessions(f64),
    /// Connections per second.
    Connections(f64),
    /// Sessions per second, in equal steps of rate and length.
    Staircase {
        /// Rate of the first step.
        from: f64,
        /// Rate of the last step.
        to: f64,
        /// Number of steps.
        steps: u32,
    },
}

/// What a connection is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// The handshake alone.
    Handshake,
    /// A handshake that the client abandons this long after its ClientHello.
    Abandon(Duration),
    /// Requests.
    Requests(RequestSpec),
    /// To stay idle; after one request if the URL's scheme is HTTP. Clients connect evenly over this time.
    Hold(Duration),
}

/// Requests on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSpec {
    /// Whether requests are sent until the run ends.
    pub keepalive: bool,
    /// Requests per connection otherwise.
    pub count: u32,
    /// Size in bytes of the body of a POST request; none: GET.
    pub post: Option<usize>,
    /// Header fields, `Name: value`.
    pub headers: Vec<String>,
    /// Status of a success; none: any 2xx.
    pub expect_status: Option<u16>,
    /// Length in bytes of every response body.
    pub expect_length: Option<usize>,
    /// SHA-256 of every response body in hex; `first`: that of the first response.
    pub expect_sha256: Option<String>,
    /// Instead of HTTP, bytes that the server returns.
    pub echo: Option<usize>,
}

/// Processes whose usage is read while a load runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSpec {
    /// Process of the server.
    pub pid: Option<u32>,
    /// Control group of the server.
    pub cgroup: Option<PathBuf>,
    /// CPUs of the server; none: those that it may use.
    pub cpus: Option<Vec<usize>>,
    /// Process of the origin server.
    pub origin_pid: Option<u32>,
}

/// Why a load cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// The target's name has no address.
    Unreachable(String),
    /// Something requested is not available.
    Invalid(String),
}

impl Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unreachable(text) | Self::Invalid(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for SpecError {}

fn invalid(why: impl Display) -> SpecError {
    SpecError::Invalid(why.to_string())
}

impl LoadSpec {
    /// A load with the defaults of the command line.
    pub fn new(url: Url, load: Load, work: Work) -> Self {
        Self {
            url,
            also: Vec::new(),
            load,
            poisson: false,
            reuse: 1,
            work,
            tls: ClientTlsOptions { tickets_kept: 2, ..ClientTlsOptions::default() },
            close: CloseMode::CloseNotify,
            sockets: Sockets::default(),
            phases: Phases {
                warm_up: Duration::from_secs(1),
                ramp: Duration::from_secs(1),
                steady: Duration::from_secs(10),
                drain: Duration::from_secs(5),
                connect_timeout: CONNECT_TIMEOUT,
                timeout: Duration::from_secs(10),
                pause: Duration::ZERO,
                in_flight: 15_000,
            },
            threads: None,
            cpus: Vec::new(),
            seed: 1,
            share: None,
            start_at: None,
            server: ServerSpec::default(),
            origin: Vec::new(),
        }
    }

    /// The plan of a run. Looks the target's name up, and reads files by `read`; opens no socket, so that an origin is
    /// for the caller to add.
    ///
    /// # Errors
    /// The first thing that is not available.
    pub fn plan(&self, read: ReadFile<'_>) -> Result<Plan, SpecError> {
        let exchange = self.workload()?;
        let mut addresses = self.url.addresses().map_err(SpecError::Unreachable)?;
        addresses.extend(&self.also);
        let security = match self.url.is_secure() {
            true => Some(self.offer().security(&self.url.host, read).map_err(|BadChoice(why)| invalid(why))?),
            false => None,
        };
        Ok(Plan {
            target: LoadTarget { addresses, security },
            model: self.model(),
            reuse: if self.reuse == 0 { Reuse::Always } else { Reuse::Times(self.reuse) },
            exchange,
            close: self.close,
            sockets: self.sockets.clone(),
            phases: self.phases,
            threads: self.threads(),
            share: self.share.unwrap_or(Share::WHOLE),
            seed: self.seed,
            origin: None,
        })
    }

    /// Arrivals at a steady rate.
    pub fn steady(&self, rate: f64, length: Duration) -> Offered {
        self.offered(vec![Piece::even(rate, length)])
    }

    fn offered(&self, steps: Vec<Piece>) -> Offered {
        let arrivals = if self.poisson { Arrivals::Poisson(self.seed) } else { Arrivals::Even };
        Offered { steps, arrivals }
    }

    fn model(&self) -> Model {
        let length = self.phases.steady;
        match self.load {
            Load::Closed(clients) => Model::Closed(clients),
            // A client that never ends its session has to be the same one throughout.
            Load::Sessions(rate) if self.reuse == 0 => Model::Connections(self.steady(rate, length)),
            Load::Sessions(rate) => Model::Sessions(self.steady(rate, length)),
            Load::Connections(rate) => Model::Connections(self.steady(rate, length)),
            Load::Staircase { from, to, steps } => {
                let rise = if steps > 1 { (to - from) / f64::from(steps - 1) } else { 0.0 };
                let step = |number: u32| Piece::even(from + rise * f64::from(number), length / steps);
                Model::Sessions(self.offered((0..steps).map(step).collect()))
            }
        }
    }

    fn offer(&self) -> ClientTlsOptions {
        let mut tls = self.tls.clone();
        if self.reuse == 1 {
            tls.resume = ResumeChoice::Never;
        }
        tls
    }

    fn workload(&self) -> Result<Workload, SpecError> {
        let http = matches!(self.url.scheme, Scheme::Https | Scheme::Http);
        match &self.work {
            Work::Handshake => Ok(Workload::Handshake),
            Work::Abandon(after) => Ok(Workload::Abandon { after: *after }),
            Work::Hold(over) if http => {
                let request = Request {
                    target: self.url.path.clone(),
                    host: self.url.host_field(),
                    ..Request::default()
                };
                let request = Arc::new(self.render(&request)?);
                Ok(Workload::Hold { first: Some((request, Arc::default())), over: *over })
            }
            Work::Hold(over) => Ok(Workload::Hold { first: None, over: *over }),
            Work::Requests(RequestSpec { echo: Some(bytes), count, .. }) => {
                Ok(Workload::Echo { bytes: *bytes, count: *count })
            }
            Work::Requests(_) if !http => Err(invalid(
                "an endpoint without http:// or https:// has no requests; give a URL, or --echo SIZE",
            )),
            Work::Requests(spec) => Ok(Workload::Http {
                request: Arc::new(self.render(&spec.request(&self.url)?)?),
                expect: Arc::new(spec.expect(&self.url)?),
                count: (!spec.keepalive).then_some(spec.count),
            }),
        }
    }

    /// The request in every version of HTTP that may be agreed on.
    fn render(&self, request: &Request) -> Result<Rendered, SpecError> {
        if !self.url.is_secure() || !self.tls.offers_http2() {
            return request.render().map_err(invalid);
        }
        if self.tls.early_data {
            // What is sent early is sent before it is known which protocol it is to be.
            return Err(invalid("early data is sent as HTTP/1.1: leave --early-data out, or h2 of --alpn"));
        }
        request.render_with_http2().map_err(invalid)
    }

    /// A CPU to pin to, or none, for each thread.
    fn threads(&self) -> Vec<Option<usize>> {
        let cpus = &self.cpus;
        let count = self.threads.map_or(cpus.len().max(1), usize::from);
        (0..count).map(|index| cpus.get(index % cpus.len().max(1)).copied()).collect()
    }

    /// The arguments of `courser-bench` that mean this load, for what a suite or a model varies: command, rates, requests,
    /// TLS by name, phases, CPUs, processes.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Args(Vec::new());
        let requests = if let Work::Requests(spec) = &self.work { Some(spec) } else { None };
        args.add(match (requests, &self.load) {
            (_, Load::Staircase { .. }) => "ramp",
            (Some(_), _) => "load",
            (None, _) => "handshake",
        });
        args.add(&self.url.to_string());
        match self.load {
            Load::Closed(clients) => args.flag("--connections", clients),
            Load::Connections(rate) if requests.is_some() => {
                args.flag("--connection-rate", format_args!("{rate:.2}"));
            }
            Load::Sessions(rate) | Load::Connections(rate) => args.flag("--rate", format_args!("{rate:.2}")),
            Load::Staircase { from, to, steps } => {
                args.flag("--from", format_args!("{from:.2}"));
                args.flag("--to", format_args!("{to:.2}"));
                args.flag("--steps", steps);
            }
        }
        args.flag("--reuse", self.reuse);
        if let Work::Abandon(after) = self.work {
            args.flag("--abandon", time(after));
        }
        if let Some(spec) = requests {
            match spec.keepalive {
                true => args.add("--keepalive"),
                false => args.flag("--requests", spec.count),
            }
            args.option("--expect-length", spec.expect_length);
        }
        if self.url.is_secure() {
            self.tls_args(&mut args);
        }
        let phases = &self.phases;
        args.flag("--duration", format_args!("{}ms", phases.steady.as_millis()));
        args.flag("--warm-up", time(phases.warm_up));
        args.flag("--ramp-up", time(phases.ramp));
        args.flag("--drain", time(phases.drain));
        args.flag("--timeout", time(phases.timeout));
        if phases.connect_timeout != CONNECT_TIMEOUT {
            args.flag("--connect-timeout", time(phases.connect_timeout));
        }
        args.list("--source", &self.sockets.sources);
        if !phases.pause.is_zero() {
            args.flag("--pause", time(phases.pause));
        }
        if self.sockets.hello_segments > 0 {
            args.flag("--hello-segments", self.sockets.hello_segments);
        }
        if !self.sockets.hello_over.is_zero() {
            args.flag("--hello-over", time(self.sockets.hello_over));
        }
        args.list("--cpus", &self.cpus);
        args.list("--also", &self.also);
        args.flag("--seed", self.seed);
        args.flag("--in-flight", phases.in_flight);
        args.option("--server-pid", self.server.pid);
        args.list("--server-cpus", self.server.cpus.as_deref().unwrap_or_default());
        args.option("--origin-pid", self.server.origin_pid);
        args.list("--origin", &self.origin);
        args.0
    }

    fn tls_args(&self, args: &mut Args) {
        args.list("--tls", &self.tls.versions);
        args.list("--sni", &self.tls.server_names);
        args.list("--suites", &self.tls.suites);
        args.list("--groups", &self.tls.groups);
        args.list("--schemes", &self.tls.schemes);
        args.list("--alpn", &self.tls.alpn);
        if self.tls.engine != EngineChoice::Lean {
            args.flag("--engine", self.tls.engine.name());
        }
        if self.tls.resume == ResumeChoice::SessionId {
            args.flag("--resume", "id");
        }
    }
}

impl RequestSpec {
    fn request(&self, url: &Url) -> Result<Request, SpecError> {
        let header = |text: &String| {
            let (name, value) = text.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let headers: Option<Vec<_>> = self.headers.iter().map(header).collect();
        let headers = headers.ok_or_else(|| invalid("a header field is written `Name: value`"))?;
        let method = if self.post.is_some() { Method::Post } else { Method::Get };
        let body = self.post.unwrap_or(0);
        Ok(Request { method, target: url.path.clone(), host: url.host_field(), headers, body })
    }

    fn expect(&self, url: &Url) -> Result<Expect, SpecError> {
        let body = match self.expect_sha256.as_deref() {
            None => BodyCheck::Length,
            Some("first") => BodyCheck::LikeTheFirst(Arc::new(OnceLock::new())),
            Some(hex) => BodyCheck::Sha256(hash(hex)?),
        };
        let status = self.expect_status.map_or(ExpectedStatus::Success, ExpectedStatus::Exactly);
        let query = url.path.split_once('?').map_or("", |(_, query)| query);
        let page = query.split('&').any(|part| part == "page");
        Ok(Expect { status, length: self.expect_length.map(|length| length as u64), body, page })
    }
}

fn hash(hex: &str) -> Result<[u8; 32], SpecError> {
    let byte = |at: usize| hex.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    let bytes = bytes.filter(|_| hex.len() == 64).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| invalid("--expect-sha256 takes 64 hexadecimal digits, or `first`"))
}

/// A time as flags take it: `0`, `2s`, `300ms`.
fn time(time: Duration) -> String {
    match time.as_millis() {
        0 => "0".into(),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// Arguments of a command line.
struct Args(Vec<String>);

impl Args {
    fn add(&mut self, word: &str) {
        self.0.push(word.to_owned());
    }

    fn flag(&mut self, name: &str, value: impl Display) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    fn option(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.flag(name, value);
        }
    }

    fn list(&mut self, name: &str, values: &[impl Display]) {
        if !values.is_empty() {
            self.flag(name, values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        }
    }
}
