//! Records with something in every field, from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_record::*;
use courser_stats::Histogram;

/// A random generator is enough that replays (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        (self.below(2) == 0).then_some(value)
    }

    fn share(&mut self) -> Option<f64> {
        let value = self.below(10_001);
        self.some(f64::from(u32::try_from(value).unwrap()) / 10_000.0)
    }
}

/// A record of `seconds` steady seconds that began at `start_unix_us`. Records with one `asked` are of one experiment.
pub(crate) fn record(asked: u64, random: &mut Random, share: Option<Share>, start_unix_us: u64) -> Record {
    let tool = Tool {
        name: "courser-bench".into(),
        version: "0.1.0".into(),
        commit: random.some("9a4115d".into()),
        sha256: random.some("ab".repeat(32)),
    };
    let experiment = experiment(&mut Random(asked), share);
    let name = share.map_or_else(|| "atlas".to_owned(), |share| format!("generator-{}", share.k));
    let envelope = Envelope {
        tool,
        created: "2026-11-21T12:00:00Z".into(),
        command_line: ["courser-bench", "load", "https://example.net/"].map(str::to_owned).to_vec(),
        machine: machine(random, name),
        cut: random.some("Ctrl-C".into()),
    };
    let mut record = Record::new(envelope, experiment);
    record.runs.push(run(random, start_unix_us));
    record.found.push(Found {
        rule: "avg<100ms,loss<0.1%".into(),
        rate: random.some(1980.5),
        rate_low: random.some(1930.0),
        rate_high: random.some(2031.0),
        note: random.some("generator-bound above 2031/s".into()),
    });
    record
}

fn machine(random: &mut Random, name: String) -> Machine {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect::<BTreeMap<_, _>>()
    };
    Machine {
        name,
        cpu_model: "Imaginary 9000 @ 3.0 GHz".into(),
        cores: 8,
        kernel: "Linux 6.1.0".into(),
        memory_bytes: 16 << 30,
        open_files: 1 << 20,
        virtualisation: random.some("kvm".into()),
        crypto: map(&[("aws-lc", "1.55.0"), ("rustls", "0.23.46")]),
        sysctls: map(&[("net.ipv4.ip_local_port_range", "1024 65535")]),
        facts: map(&[("clocksource", "tsc")]),
    }
}

fn experiment(random: &mut Random, share: Option<Share>) -> Experiment {
    Experiment {
        command: "load".into(),
        target: Target { url: "https://example.net/".into(), addresses: vec!["192.0.2.1:443".into()] },
        tls: Some(offer(random)),
        load: LoadModel {
            kind: random.one_of(&[
                LoadKind::Sessions,
                LoadKind::ConstantRate,
                LoadKind::Closed,
                LoadKind::Staircase,
                LoadKind::Handshake,
                LoadKind::Abandon,
            ]),
            rate: random.some(2000.0 / 3.0),
            rate_to: random.some(20_000.0),
            connections: random.some(1000),
            keepalive: random.below(2) == 0,
            requests_per_connection: random.some(1),
            arrivals: random.one_of(&[Arrivals::Even, Arrivals::Poisson]),
            seed: random.below(1 << 53),
            share,
            start_at_unix_us: random.some(1_800_000_000_000_000),
            abandon_after_us: random.some(0),
        },
        phases: Phases {
            warm_up_us: 1_000_000,
            ramp_us: 1_000_000,
            steady_us: 3_000_000,
            drain_us: 1_000_000,
        },
        sockets: Sockets {
            sources: share.map(|share| format!("192.0.2.{}", 100 + share.k)).into_iter().collect(),
            close: random.one_of(&[CloseMode::CloseNotify, CloseMode::Fin, CloseMode::Rst]),
            nodelay: random.below(2) == 0,
            hello_segments: random.some(2),
            hello_over_us: random.some(2_000_000),
            connect_timeout_us: random.some(3_000_000),
            timeout_us: random.some(10_000_000),
        },
        request: Some(Request {
            method: "GET".into(),
            path: "/?s=1k".into(),
            body_bytes: 0,
            expected: Expected {
                status: random.some(200),
                body_bytes: random.some(1024),
                sha256: random
                    .some("5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef".into()),
            },
        }),
        rules: vec!["avg<100ms,loss<0.1%".into()],
    }
}

fn offer(random: &mut Random) -> TlsOffer {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    TlsOffer {
        engine: "lean".into(),
        verification: random.one_of(&[
            Verification::None,
            Verification::Signature,
            Verification::SignatureSample,
            Verification::Sample,
            Verification::Full,
        ]),
        versions: list(&["TLS 1.3"]),
        suites: list(&["TLS_AES_128_GCM_SHA256"]),
        groups: list(&["secp256r1", "X25519"]),
        schemes: list(&["ecdsa_secp256r1_sha256"]),
        alpn: list(&["http/1.1"]),
        resumption: random.one_of(&[Resumption::Never, Resumption::SessionId, Resumption::Ticket]),
        reuse: 4,
        tickets_kept: 2,
        early_data: random.below(2) == 0,
        server_names: random.some("example.net".into()),
        client_certificate: random.below(2) == 0,
    }
}

fn run(random: &mut Random, start_unix_us: u64) -> Run {
    let phases = [Phase::WarmUp, Phase::Ramp, Phase::Steady, Phase::Steady, Phase::Steady, Phase::Drain];
    let intervals = (0..).zip(phases).map(|(number, phase)| interval(random, number, phase, start_unix_us));
    Run {
        label: "load".into(),
        seconds: intervals.collect(),
        offered_rate: random.some(1000.0 / 3.0),
        window: RunTimes {
            start_unix_us,
            steady_start_unix_us: start_unix_us + 2_000_000,
            steady_end_unix_us: start_unix_us + 5_000_000,
            end_unix_us: start_unix_us + 6_000_000,
        },
        totals: totals(random, start_unix_us),
        server: Some(server(random)),
        generators: vec![generator(random)],
        wire: Some(wire(random)),
        findings: [Severity::Note, Severity::Warning, Severity::Invalid]
            .map(|severity| Finding::new("core-busy", severity, "core 1 was 93 % busy", "give it more cores"))
            .to_vec(),
        verdict: Verdict::inconclusive("client-bound: core 1 was 93 % busy"),
    }
}

fn interval(random: &mut Random, second: u64, phase: Phase, start_unix_us: u64) -> Second {
    let response = durations(random, 120);
    Second {
        second,
        start_unix_us: start_unix_us + second * 1_000_000,
        phase,
        offered_rate: random.some(1000.0 / 3.0),
        attempted: 130,
        succeeded: 120,
        failed: random.below(10),
        requests: 120,
        full: 30,
        resumed: 90,
        in_flight: random.below(100),
        response: Packed::from(&response),
        received_bytes: 120 * 1024,
        sent_bytes: 120 * 64,
    }
}

fn durations(random: &mut Random, count: u64) -> Histogram {
    let mut histogram = Histogram::default();
    (0..count).for_each(|_| histogram.record(Duration::from_nanos(200_000 + random.below(40_000_000))));
    histogram
}

fn totals(random: &mut Random, start_unix_us: u64) -> Totals {
    Totals {
        window_us: 3_000_000,
        sessions: 90,
        connections: Outcomes { attempted: 390, succeeded: 360, failed: 30 },
        requests: Outcomes { attempted: 370, succeeded: 360, failed: 10 },
        completed: Some(Completions { transactions: 351, connections: 340, full: 80, resumed: 270 }),
        received_bytes: 360 * 1024,
        sent_bytes: 360 * 64,
        failures: [("reset".to_owned(), 20), ("timeout".to_owned(), 10)].into_iter().collect(),
        failure_samples: (0..15)
            .map(|index| FailureSample {
                at_unix_us: start_unix_us + 2_000_000 + index * 1000,
                class: "reset".into(),
                detail: "connection reset by peer after Finished".into(),
            })
            .collect(),
        negotiated: [Handshake::Full, Handshake::SessionId, Handshake::Ticket, Handshake::Psk]
            .map(|handshake| negotiated(random, handshake))
            .to_vec(),
        offered: [("none".to_owned(), 90), ("psk".to_owned(), 270)].into_iter().collect(),
        tickets_received: [(0, 10), (2, 350)].into_iter().collect(),
        pages: [("1", 100), ("2", 102)].map(|(page, count)| (page.to_owned(), count)).into_iter().collect(),
        early_data_accepted: random.below(100),
        alpn: [(String::new(), 10), ("http/1.1".to_owned(), 350)].into_iter().collect(),
        times: times::all().map(|name| (name.to_owned(), durations(random, 360))).collect(),
    }
}

fn negotiated(random: &mut Random, handshake: Handshake) -> Negotiated {
    Negotiated {
        handshake,
        version: "TLS 1.3".into(),
        suite: "TLS_AES_128_GCM_SHA256".into(),
        group: Some("secp256r1".into()),
        scheme: (handshake == Handshake::Full).then(|| "ecdsa_secp256r1_sha256".into()),
        retried: false,
        count: 80 + random.below(20),
    }
}

fn server(random: &mut Random) -> ServerUsage {
    let mut usage = ServerUsage {
        pids: vec![4711, 4712],
        cgroup: random.some("/system.slice/nginx.service".into()),
        user_us: 90_000,
        system_us: 36_000,
        idle: random.share(),
        threads: vec![ServerThread {
            tid: 4712,
            name: "worker-0".into(),
            user_us: 90_000,
            system_us: 36_000,
        }],
        memory_bytes: random.some(30 << 20),
        alignment_error_us: 120,
        idle_memory: random.some(IdleMemory {
            connections: 5000,
            before_bytes: 10 << 20,
            with_bytes: 60 << 20,
        }),
        cpu_limit: random.some(CpuLimit {
            quota_us: 2500,
            period_us: 5000,
            periods: 400,
            throttled_periods: 390,
            throttled_us: 970_000,
        }),
        ..ServerUsage::default()
    };
    usage.divide(360);
    usage
}

fn generator(random: &mut Random) -> GeneratorUsage {
    GeneratorUsage {
        source: None,
        threads: vec![GeneratorThread {
            cpu: random.some(1),
            busy: random.share(),
            run_queue_wait_us: 1500,
            schedule_lag_p99_us: random.some(85.25),
        }],
        cores: vec![CoreUsage { cpu: 1, busy: random.share(), steal: random.share() }],
        cpu_us: 40_000,
        handshakes: 360,
        max_in_flight: random.below(500),
    }
}

fn wire(random: &mut Random) -> WireCost {
    let handshakes = HandshakeBytes {
        handshakes: 90,
        out_bytes: 90 * 300,
        in_bytes: 90 * 1200,
        out_segments: 90 * 5,
        in_segments: 90 * 4 + random.below(90),
    };
    WireCost {
        full: handshakes,
        resumed: handshakes,
        requests: RequestBytes {
            requests: 360,
            out_payload_bytes: 360 * 64,
            in_payload_bytes: 360 * 1100,
            out_wire_bytes: 360 * 86,
            in_wire_bytes: 360 * 1122,
        },
    }
}
