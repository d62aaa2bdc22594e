//! From flags to the load that they ask for.

use std::time::Duration;

use courser_load::plan::{Phases, Sockets};
use courser_load::schedule::Share;
use courser_load::spec::{Load, LoadSpec, RequestSpec, ServerSpec, Work};
use courser_load::tls_options::{ClientTlsOptions, EngineChoice, ResumeChoice};
use courser_load::url::Url;
use courser_record::CloseMode;

use super::{CloseArg, CommonArgs, EngineArg, RequestArgs, ResumeArg, ServerArgs, TlsArgs};
use super::{HandshakeArgs, IdleArgs, LoadArgs, RampArgs, SearchArgs};
use crate::units::Cpus;

impl LoadArgs {
    pub(crate) fn spec(&self) -> LoadSpec {
        let load = match (self.rate, self.connection_rate, self.connections) {
            (Some(rate), ..) => Load::Sessions(rate),
            (_, Some(rate), _) => Load::Connections(rate),
            (.., clients) => Load::Closed(clients.unwrap_or(1)),
        };
        self.request.load(&self.common, &self.url, load, self.reuse.reuse)
    }
}

impl HandshakeArgs {
    pub(crate) fn spec(&self) -> LoadSpec {
        let load = self.rate.map_or(Load::Closed(self.connections), Load::Connections);
        self.common.spec(
            &self.url,
            load,
            self.reuse.reuse,
            self.abandon.map_or(Work::Handshake, Work::Abandon),
        )
    }
}

impl RampArgs {
    pub(crate) fn spec(&self) -> LoadSpec {
        let load = Load::Staircase { from: self.from, to: self.to, steps: self.steps };
        self.request.load(&self.common, &self.url, load, self.reuse.reuse)
    }
}

impl SearchArgs {
    /// The load at the lowest rate.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.request.load(&self.common, &self.url, Load::Sessions(self.from), self.reuse.reuse)
    }
}

impl IdleArgs {
    /// Connections are opened over this time, from the start of the steady phase, and then held.
    pub(crate) fn spec(&self, over: Duration) -> LoadSpec {
        let mut spec = self.common.spec(&self.url, Load::Closed(self.connections), 1, Work::Hold(over));
        (spec.phases.warm_up, spec.phases.ramp) = Default::default();
        spec.phases.steady += over;
        spec.phases.in_flight = usize::try_from(self.connections).unwrap_or(usize::MAX);
        spec
    }
}

impl CommonArgs {
    fn spec(&self, url: &Url, load: Load, reuse: u32, work: Work) -> LoadSpec {
        let (run, sockets) = (&self.run, &self.sockets);
        LoadSpec {
            url: url.clone(),
            also: sockets.also.clone(),
            load,
            poisson: run.poisson,
            reuse,
            work,
            tls: self.tls.options(),
            close: match sockets.close {
                CloseArg::CloseNotify => CloseMode::CloseNotify,
                CloseArg::Fin => CloseMode::Fin,
                CloseArg::Rst => CloseMode::Rst,
            },
            sockets: Sockets {
                sources: sockets.source.clone(),
                nagle: sockets.nagle,
                hello_segments: sockets.hello_segments,
                hello_over: sockets.hello_over,
            },
            phases: Phases {
                warm_up: run.warm_up,
                ramp: run.ramp_up,
                steady: run.duration,
                drain: run.drain,
                connect_timeout: sockets.connect_timeout,
                timeout: sockets.timeout,
                pause: Duration::ZERO,
                in_flight: run.in_flight,
            },
            threads: run.threads,
            cpus: run.cpus.as_ref().map(|cpus| cpus.0.clone()).unwrap_or_default(),
            seed: run.seed,
            share: run.share.map(|(k, n)| Share { index: k - 1, of: n }),
            start_at: run.start_at,
            server: self.server.spec(),
            origin: Vec::new(),
        }
    }
}

impl TlsArgs {
    fn options(&self) -> ClientTlsOptions {
        ClientTlsOptions {
            engine: match self.engine {
                EngineArg::Lean => EngineChoice::Lean,
                EngineArg::Real => EngineChoice::Real,
                EngineArg::Openssl => EngineChoice::Openssl,
            },
            versions: self.tls.clone(),
            suites: self.suites.clone(),
            groups: self.groups.clone(),
            schemes: self.schemes.clone(),
            alpn: self.alpn.clone(),
            resume: match self.resume {
                ResumeArg::Ticket => ResumeChoice::Ticket,
                ResumeArg::Id => ResumeChoice::SessionId,
            },
            tickets_kept: self.tickets,
            early_data: self.early_data,
            server_names: self.sni.clone(),
            server_names_file: self.sni_file.clone(),
            zipf: self.zipf,
            ca: self.ca.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
        }
    }
}

impl ServerArgs {
    fn spec(&self) -> ServerSpec {
        ServerSpec {
            pid: self.server_pid,
            cgroup: self.server_cgroup.clone(),
            cpus: self.server_cpus.as_ref().map(|Cpus(cpus)| cpus.clone()),
            origin_pid: self.origin_pid,
        }
    }
}

impl RequestArgs {
    /// The load of a command that sends requests.
    fn load(&self, common: &CommonArgs, url: &Url, load: Load, reuse: u32) -> LoadSpec {
        let mut spec = common.spec(url, load, reuse, Work::Requests(self.spec()));
        spec.phases.pause = self.pause;
        LoadSpec { origin: self.origin.clone(), ..spec }
    }

    fn spec(&self) -> RequestSpec {
        RequestSpec {
            keepalive: self.keepalive,
            count: self.requests,
            post: self.post,
            headers: self.headers.clone(),
            expect_status: self.expect_status,
            expect_length: self.expect_length,
            expect_sha256: self.expect_sha256.clone(),
            echo: self.echo,
        }
    }
}
