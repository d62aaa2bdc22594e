//! Records of suites that never ran: every kind of figure, plot and absence, and text as a hostile server would choose it.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_record::lab::{
    Block, Case, Cell, CellState, Chart, ChartKind, ControlRatio, CoreRole, Era, Figure, File, HostNoise,
    LAB_FORMAT, LAB_VERSION, LeftOut, Limit, LimitPart, Measure, Profile, Published, PublishedRow,
    SuiteNotes, Symbol, Table, TargetNotes, Tuning, Value, Verified, WindowResult,
};
use courser_record::{Completions, Envelope, Finding, Lab, Machine, Second, Severity, Summary, Tool};
use courser_stats::Histogram;

/// Text as a server or a configuration file may have it.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script> | =1+1 \"quoted\" & \u{1b}[2J 'it'";

/// Staircases, saturation, clients, a rate: three terminators, one of them stock, one that cannot, one that failed.
pub(crate) fn capacity() -> Lab {
    let targets = ["courser", "haproxy", "nginx", "nginx:stock"];
    let cases = vec![
        case(
            "tls13-ecdsa",
            "TLS 1.3, ECDSA P-256",
            Era::Modern,
            Measure::Saturation,
            &[("key", "P-256"), ("object", "1 KB")],
        ),
        case(
            "tls13-rsa",
            "TLS 1.3, RSA-2048",
            Era::Modern,
            Measure::Saturation,
            &[("key", "RSA-2048"), ("object", "1 KB")],
        ),
        case(
            "big",
            "TLS 1.3, ECDSA P-256, 64 KB",
            Era::Modern,
            Measure::Saturation,
            &[("key", "P-256"), ("object", "64 KB")],
        ),
        case(
            "stairs",
            "Staircase, ECDSA P-256",
            Era::Modern,
            Measure::Staircase,
            &[("key", "P-256"), ("object", "1 KB")],
        ),
        case("clients", "Clients of two kinds", Era::Modern, Measure::Clients, &[]),
        case(
            "rsa1024",
            "RSA-1024, as published",
            Era::Historic,
            Measure::Saturation,
            &[("key", "RSA-1024"), ("object", "1 KB")],
        ),
    ];
    let speed = |target: &str| match target {
        "courser" => 1.0,
        "haproxy" => 1.62,
        "nginx" => 1.621,
        _ => 2.4,
    };
    let cells =
        cases.iter().flat_map(|case| targets.map(|target| cell(case, target, speed(target)))).collect();
    let mut lab = lab("capacity", "Capacity: transactions before clients wait", cases, cells);
    lab.targets = targets.map(target).to_vec();
    lab.suite.tables = tables();
    lab.suite.charts = charts();
    lab.suite.left_out =
        vec![LeftOut { row: "RC4-MD5".to_owned(), reason: "RC4 is prohibited in TLS (RFC 7465)".to_owned() }];
    spoil(&mut lab);
    lab
}

/// Figures of libraries without a network.
pub(crate) fn primitives() -> Lab {
    let algorithm = |name: &str, era| case(name, name, era, Measure::InProcess, &[("kind", "throughput")]);
    let cases = vec![algorithm("aes-128-gcm", Era::Modern), algorithm("md2", Era::Historic)];
    let figure = |name: &str, value: f64| Figure {
        name: name.to_owned(),
        unit: "1000 bytes/s".to_owned(),
        value,
        low: Some(value * 0.98),
        high: Some(value * 1.02),
    };
    let measured = |target: &str, factor: f64| Cell {
        case: "aes-128-gcm".to_owned(),
        target: target.to_owned(),
        state: CellState::Done,
        blocks: vec![Block {
            windows: vec![WindowResult {
                figures: vec![figure("8", 91_000.0 * factor), figure("1024", 2_400_000.0 * factor)],
                ..WindowResult::default()
            }],
            ..Block::default()
        }],
        ..Cell::default()
    };
    let cannot = |target: &str| Cell {
        case: "md2".to_owned(),
        target: target.to_owned(),
        state: CellState::Cannot,
        reason: Some("the library does not have it".to_owned()),
        ..Cell::default()
    };
    let cells =
        vec![measured("aws-lc-rs", 1.0), measured("openssl", 0.8), cannot("aws-lc-rs"), cannot("openssl")];
    let mut lab = lab("primitives", "Primitives: what the library does", cases, cells);
    lab.targets = ["aws-lc-rs", "openssl"].map(target).to_vec();
    lab.suite.tables = vec![Table {
        id: "throughput".to_owned(),
        title: "Throughput in 1000s of bytes per second".to_owned(),
        rows: "case".to_owned(),
        columns: "value".to_owned(),
        values: vec![Value::Figure],
        published: Some(published(
            "SSLeay 0.8, 1997",
            &["8", "64", "1024"],
            &[("md2", &["131.02", "368.41", "549.21"])],
        )),
        ..Table::default()
    }];
    lab
}

/// Clients that leave, at the capacity and beyond: one target keeps it, one falls, one serves none any more.
pub(crate) fn overload() -> Lab {
    let targets = ["hitch", "courser", "nginx"];
    let of = |percent: &str| {
        let dimensions = [("capacity", percent), ("key", "RSA-4096"), ("patience", "1 s")];
        case(&format!("load-{percent}"), percent, Era::Modern, Measure::Rate, &dimensions)
    };
    let cases = vec![of("100 %"), of("1000 %")];
    let cells = cases.iter().flat_map(|case| targets.map(|target| cell(case, target, 53.3))).collect();
    let mut lab = lab("overload", "Overload", cases, cells);
    lab.targets = targets.map(target).to_vec();
    for cell in lab.cells.iter_mut().filter(|cell| cell.case == "load-100 %") {
        for window in cell.blocks.iter_mut().flat_map(|block| &mut block.windows) {
            window.figures = vec![percent("clients served", 1.0)];
        }
    }
    for cell in lab.cells.iter_mut().filter(|cell| cell.case == "load-1000 %") {
        let kept = match cell.target.as_str() {
            "courser" => 0.98,
            "hitch" => 0.2,
            _ => 0.0,
        };
        // Rounds differ, each target in its own order.
        let mut rounds = [0.99, 1.0, 1.01, 1.01, 1.0, 0.99];
        rounds.rotate_left(cell.target.len() % 6);
        for (window, round) in cell.blocks.iter_mut().flat_map(|block| &mut block.windows).zip(rounds) {
            #[expect(clippy::cast_possible_truncation, reason = "small and positive")]
            let served = (window.succeeded as f64 * kept) as u64;
            (window.succeeded, window.failed) = (served, window.attempted * 10 - served);
            window.completed =
                Some(Completions { transactions: served, connections: served, full: served, resumed: 0 });
            window.figures = vec![percent("goodput of capacity", kept * round)];
        }
    }
    lab
}

fn percent(name: &str, share: f64) -> Figure {
    Figure { name: name.to_owned(), unit: "%".to_owned(), value: 100.0 * share, low: None, high: None }
}

/// Half and four fifths of what each can carry: the generator was the limit of the fastest at the higher of them.
pub(crate) fn latency() -> Lab {
    let targets = ["courser", "hitch", "nginx"];
    let of = |percent: &str| {
        let dimensions = [("capacity", percent), ("key", "P-256"), ("version", "TLS 1.3")];
        case(
            &format!("wait-{percent}"),
            &format!("TLS 1.3, {percent} of capacity"),
            Era::Modern,
            Measure::Rate,
            &dimensions,
        )
    };
    let cases = vec![of("50 %"), of("80 %")];
    let slow = |target: &str| match target {
        "courser" => 1.0,
        "hitch" => 1.5,
        _ => 1.9,
    };
    let cells =
        cases.iter().flat_map(|case| targets.map(|target| cell(case, target, slow(target)))).collect();
    let mut lab = lab("latency", "How long clients wait", cases, cells);
    lab.targets = targets.map(target).to_vec();
    let is_bound = |cell: &&mut Cell| cell.case == "wait-80 %" && cell.target == "courser";
    lab.cells.iter_mut().filter(is_bound).for_each(make_inconclusive);
    lab
}

/// As large as a long night makes them: many cells with all their histograms, seconds and files.
pub(crate) fn large() -> Lab {
    let mut lab = capacity();
    let (cases, cells) = (lab.cases.clone(), lab.cells.clone());
    for copy in 0..12 {
        let renamed = |id: &str| format!("{id}-{copy}");
        lab.cases.extend(cases.iter().map(|case| Case {
            id: renamed(&case.id),
            title: renamed(&case.title),
            ..case.clone()
        }));
        let files = vec![File {
            name: "server.conf".to_owned(),
            text: format!("# {copy}\n{}", "worker 1;\n".repeat(200)),
        }];
        lab.cells.extend(cells.iter().map(|cell| Cell {
            case: renamed(&cell.case),
            files: files.clone(),
            ..cell.clone()
        }));
    }
    lab
}

fn lab(name: &str, title: &str, cases: Vec<Case>, cells: Vec<Cell>) -> Lab {
    Lab {
        format: LAB_FORMAT.to_owned(),
        version: LAB_VERSION,
        envelope: Envelope {
        tool: Tool { name: "courser-bench".to_owned(), version: "0.1.0".to_owned(), commit: None, sha256: None },
        created: "2026-11-22T02:00:00Z".to_owned(),
        command_line: ["courser-bench", "run", name, "--quick", "--seed", "7"].map(str::to_owned).to_vec(),
        cut: None,
        machine: Machine {
            name: "bench-1".to_owned(),
            cpu_model: "Example Processor 3.0 GHz".to_owned(),
            cores: 2,
            kernel: "Linux 6.12".to_owned(),
            memory_bytes: 8 << 30,
            open_files: 1_048_576,
            virtualisation: Some("kvm".to_owned()),
            crypto: BTreeMap::from([("aws-lc".to_owned(), "1.70".to_owned())]),
            sysctls: BTreeMap::from([("net.core.somaxconn".to_owned(), "4096".to_owned())]),
            facts: BTreeMap::from([("clock source".to_owned(), "tsc".to_owned())]),
        },
        },
        elapsed_us: 500_000_000,
        tuning: vec![
            Tuning {
                name: "net.core.somaxconn".to_owned(),
                here: Some("4096".to_owned()),
                published: Some("131072".to_owned()),
                source: Some("Tempesta, 2018".to_owned()),
                differs: true,
                why: "a burst of connections longer than this is refused".to_owned(),
                command: Some("sysctl -w net.core.somaxconn=131072".to_owned()),
            },
            Tuning { name: "timer frequency".to_owned(), here: Some("250".to_owned()), why: "sets how finely time is shared".to_owned(), ..Tuning::default() },
        ],
        cores: vec![
            CoreRole { cpu: 0, roles: vec!["generator".to_owned(), "origin".to_owned()] },
            CoreRole { cpu: 1, roles: vec!["target".to_owned()] },
        ],
        cores_note: "Generator and origin share a core, so rates are inconclusive sooner than with more cores.".to_owned(),
        suite: SuiteNotes {
            name: name.to_owned(),
            title: title.to_owned(),
            source: "Vincent Bernat, 2011, on an HP DL380 G7".to_owned(),
            question: "How many transactions a second before clients wait?".to_owned(),
            analysis: "Latency explodes before throughput does, so the maximum flatters.\n\nWhat separates the programs \
                today is what surrounds the signature."
                .to_owned(),
            ..SuiteNotes::default()
        },
        seed: 7,
        quick: true,
        rtt_us: None,
        targets: Vec::new(),
        cases,
        cells,
        findings: vec![Finding::new(
            "loopback",
            Severity::Note,
            "On loopback a sender pays the receiver's network stack.",
            "compare with the direct path",
        )],
    }
}

/// What went wrong: one cannot, one died, one is inconclusive, one is hostile.
fn spoil(lab: &mut Lab) {
    for cell in &mut lab.cells {
        match (cell.case.as_str(), cell.target.as_str()) {
            ("rsa1024", "courser") => {
                absent(cell, CellState::Cannot, "aws-lc-rs takes no RSA key under 2048 bits");
            }
            ("rsa1024", "haproxy") => absent(cell, CellState::Failed, HOSTILE),
            ("rsa1024", "nginx:stock") => absent(cell, CellState::Pending, ""),
            ("big", _) => make_inconclusive(cell),
            ("tls13-ecdsa", "haproxy") => cell.findings.push(Finding::new(
                "steal",
                Severity::Warning,
                "12 % of a core went to other guests of this machine",
                "run it again at a quieter time",
            )),
            _ => {}
        }
    }
}

fn absent(cell: &mut Cell, state: CellState, reason: &str) {
    (cell.state, cell.reason) = (state, (!reason.is_empty()).then(|| reason.to_owned()));
    cell.blocks.clear();
}

fn make_inconclusive(cell: &mut Cell) {
    for window in cell.blocks.iter_mut().flat_map(|block| &mut block.windows) {
        window.inconclusive = Some("client-bound: core 0 was 97 % busy".to_owned());
    }
}

fn case(id: &str, title: &str, era: Era, measure: Measure, dimensions: &[(&str, &str)]) -> Case {
    let floor = LimitPart { name: "reads and writes of a full connection".to_owned(), times: 1.0, us: 19.0 };
    let part = LimitPart { name: "ECDSA P-256 sign".to_owned(), times: 0.25, us: 48.0 };
    Case {
        id: id.to_owned(),
        title: title.to_owned(),
        era,
        dimensions: dimensions
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        measure,
        asked: vec![title.to_owned(), "four connections per session".to_owned()],
        limit: (measure == Measure::Saturation).then(|| Limit {
            us_per_connection: 31.0,
            parts: vec![part],
            floor: vec![floor],
        }),
        control: control(id),
    }
}

/// One as it should be, and one that is not.
fn control(id: &str) -> Option<ControlRatio> {
    let of = |ratio, load| ControlRatio { ratio, low: ratio * 0.95, high: ratio * 1.07, targets: 3, load };
    match id {
        "tls13-ecdsa" => Some(of(1.02, 0.97)),
        "tls13-rsa" => Some(of(1.31, 0.64)),
        _ => None,
    }
}

fn target(name: &str) -> TargetNotes {
    let (title, preset) = match name.split_once(':') {
        Some((program, preset)) => (format!("{program} ({preset})"), preset),
        None => (name.to_owned(), "tuned"),
    };
    TargetNotes {
        name: name.to_owned(),
        title,
        program: format!("/usr/sbin/{name}"),
        version: "1.2.3".to_owned(),
        tls_library: (name != "nginx").then(|| "OpenSSL 3.0.15".to_owned()),
        preset: preset.to_owned(),
        note: "one thread per core".to_owned(),
        ..TargetNotes::default()
    }
}

/// Blocks of a terminator that takes `slow` times what the fastest takes, with a little noise that is no chance.
fn cell(case: &Case, target: &str, slow: f64) -> Cell {
    let mut cell = Cell {
        case: case.id.clone(),
        target: target.to_owned(),
        state: CellState::Done,
        command: vec![format!("/usr/sbin/{target}"), "-f".to_owned(), "server.conf".to_owned()],
        files: vec![File { name: "server.conf".to_owned(), text: format!("# {HOSTILE}\nworkers 1\n") }],
        verified: Some(Verified {
            version: "TLS 1.3".to_owned(),
            suite: "TLS_AES_128_GCM_SHA256".to_owned(),
            group: Some("X25519".to_owned()),
            key: Some("P-256".to_owned()),
            again: Some("resumed by PSK".to_owned()),
            body_bytes: Some(1024),
            ..Verified::default()
        }),
        ..Cell::default()
    };
    let rounds = if case.measure == Measure::Staircase { 1 } else { 6 };
    cell.blocks =
        (0..rounds).map(|round| block(case, slow * (1.0 + 0.004 * wobble(target, round)), round)).collect();
    cell.profile = (case.id == "tls13-rsa").then(profile);
    cell
}

/// Between -1 and 1, another for each target and round.
fn wobble(target: &str, round: u32) -> f64 {
    let start = round.wrapping_mul(0x9e37_79b9);
    let mixed = target.bytes().fold(start, |mixed, byte| (mixed ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    f64::from((mixed >> 16) % 201) / 100.0 - 1.0
}

fn block(case: &Case, slow: f64, round: u32) -> Block {
    let windows = match case.measure {
        Measure::Staircase => (0..=9).map(|step| step_of_stairs(step, slow)).collect(),
        Measure::Clients => vec![
            window("modern client", 9000.0 / slow, 300.0 * slow, 70.0 * slow, 2_000_000),
            window("old client", 4000.0 / slow, 700.0 * slow, 160.0 * slow, 2_000_000),
        ],
        _ => vec![window("", 8000.0 / slow, 400.0 * slow, 85.0 * slow, 2_000_000)],
    };
    let drift = HostNoise { steal: Some(0.001), switches: Some(900), speed: Some(410.0) };
    Block {
        round,
        start_unix_us: 1_795_000_000_000_000 + u64::from(round) * 30_000_000,
        windows,
        host_noise: drift,
    }
}

/// Saturation first, then more and more until it gives way.
fn step_of_stairs(step: u32, slow: f64) -> WindowResult {
    let capacity = 6000.0 / slow;
    if step == 0 {
        return window("saturation", capacity, 900.0, 120.0 * slow, 2_000_000);
    }
    let offered = capacity * f64::from(step) / 7.0;
    let late = (offered / capacity).powi(12) * 60_000.0;
    let mut window =
        window(&format!("step {step}"), offered.min(capacity), 700.0 + late, 120.0 * slow, 3_000_000);
    window.offered_tps = Some(offered);
    window.attempted = whole(offered * 3.0);
    window.failed = window.attempted - window.succeeded;
    for (index, second) in (0..).zip(&mut window.seconds) {
        second.second = u64::from(step - 1) * 3 + index;
        second.attempted = whole(offered);
        second.failed = second.attempted.saturating_sub(second.succeeded);
    }
    window
}

fn window(label: &str, tps: f64, response_us: f64, cpu_us: f64, window_us: u64) -> WindowResult {
    let seconds = window_us as f64 / 1e6;
    let succeeded = whole(tps * seconds);
    let second = |second| Second {
        second,
        attempted: whole(tps),
        succeeded: whole(tps),
        response: Summary { mean_us: Some(response_us), ..Summary::default() },
        ..Second::default()
    };
    let mut response = Histogram::default();
    for index in 1..=succeeded.min(2000) {
        response.record(Duration::from_micros(whole(response_us * 0.7) + 300 * (2000 / index)));
    }
    WindowResult {
        label: label.to_owned(),
        window_us,
        attempted: succeeded,
        succeeded,
        connections: succeeded,
        completed: Some(Completions {
            transactions: succeeded,
            connections: succeeded,
            full: succeeded / 4,
            resumed: succeeded - succeeded / 4,
        }),
        full: succeeded / 4,
        resumed: succeeded - succeeded / 4,
        response: (&response).into(),
        user_us: Some(whole(cpu_us * tps * seconds * 0.6)),
        system_us: Some(whole(cpu_us * tps * seconds * 0.4)),
        memory_bytes: Some(40 << 20),
        target_idle: Some(0.01),
        generator_busy: Some(0.7),
        seconds: (0..window_us / 1_000_000).map(second).collect(),
        ..WindowResult::default()
    }
}

fn whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "small and positive")]
    let whole = value.round() as u64;
    whole
}

fn profile() -> Profile {
    let classes =
        [("crypto", 500), ("tls", 120), ("kernel", 300), ("proxy", 50), ("memory", 25), ("other", 5)];
    Profile {
        samples: 1000,
        hertz: 999,
        classes: classes.map(|(name, count)| (name.to_owned(), count)).into_iter().collect(),
        system_calls: [("sendto", 90), ("connect", 60), ("close", 110)]
            .map(|(name, count)| (name.to_owned(), count))
            .into(),
        symbols: vec![Symbol {
            name: "bn_mul_mont".to_owned(),
            object: "libcrypto.so.3".to_owned(),
            class: "crypto".to_owned(),
            count: 400,
        }],
        folded:
            "main;accept;SSL_do_handshake;bn_mul_mont 400\nmain;accept;SSL_do_handshake;<b>&;malloc 145\n\
            main;relay;[kernel] 300\nmain;relay;memcpy 155\nnot a stack\n"
                .to_owned(),
    }
}

fn published(source: &str, columns: &[&str], rows: &[(&str, &[&str])]) -> Published {
    let row = |(label, cells): &(&str, &[&str])| PublishedRow {
        label: (*label).to_owned(),
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
    };
    Published {
        source: source.to_owned(),
        unit: "TPS".to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows: rows.iter().map(row).collect(),
    }
}

fn filter(name: &str, values: &[&str]) -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([(name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())])
}

fn tables() -> Vec<Table> {
    let table = |id: &str, title: &str, rows: &str, columns: &str, values: &[Value]| Table {
        id: id.to_owned(),
        title: title.to_owned(),
        rows: rows.to_owned(),
        columns: columns.to_owned(),
        values: values.to_vec(),
        ..Table::default()
    };
    use Value::{Cpu, KernelShare, LimitShare, MaxTps, MaxTpsAvg100ms, MaxTpsAvg500ms, MaxTpsLoss, P99, Tps};
    vec![
        Table {
            filter: filter("measure", &["staircase"]),
            published: Some(published(
                "Bernat 2011",
                &["maximum", "average < 100 ms", "average < 500 ms", "loss < 0.01 %"],
                &[("stud, 1 core, 32 bit", &["788", "766", "776", "783"])],
            )),
            ..table(
                "four-figures",
                "Four figures of the staircase",
                "target",
                "value",
                &[MaxTps, MaxTpsAvg100ms, MaxTpsAvg500ms, MaxTpsLoss],
            )
        },
        Table {
            filter: filter("measure", &["saturation"]),
            ..table("modern", "At saturation", "target", "case", &[Tps, Cpu, KernelShare, LimitShare])
        },
        Table {
            filter: filter("era", &["historic"]),
            published: Some(published(
                "Bernat 2011",
                &["nginx 1.0.5", "stud 0.1"],
                &[("control", &["1799", "9000"])],
            )),
            ..table("contexts", "As published", "key", "target", &[Tps])
        },
        Table {
            filter: filter("measure", &["clients"]),
            ..table("clients", "What clients get", "target", "client", &[Tps, P99])
        },
        Table {
            published: Some(published("elsewhere", &["something else"], &[("a finding", &["in words"])])),
            filter: filter("key", &["P-256"]),
            ..table("objects", "By object", "target", "object", &[Cpu])
        },
    ]
}

fn charts() -> Vec<Chart> {
    let chart = |title: &str, kind, value, x: Option<&str>, filter| Chart {
        title: title.to_owned(),
        kind,
        x: x.map(str::to_owned),
        value,
        filter,
    };
    let (stairs, saturation) = (filter("measure", &["staircase"]), filter("measure", &["saturation"]));
    vec![
        chart("Processor time per connection", ChartKind::Bars, Value::Cpu, None, filter("era", &["modern"])),
        chart("Transactions a second", ChartKind::Bars, Value::Tps, None, saturation.clone()),
        chart("By object", ChartKind::Curve, Value::Cpu, Some("object"), saturation.clone()),
        chart("Staircase", ChartKind::Staircase, Value::Tps, None, stairs.clone()),
        chart("Response time against offered load", ChartKind::Latency, Value::Mean, None, stairs),
        chart("Where processor time goes", ChartKind::Cpu, Value::Cpu, None, saturation.clone()),
        chart("Response times by percentile", ChartKind::Percentiles, Value::P99, None, saturation),
    ]
}

/// As if a window had been so much of its length.
pub(crate) fn seconds_of(window: &mut WindowResult, part: f64) {
    let less = |count: u64| whole(count as f64 * part);
    window.window_us = less(window.window_us);
    (window.attempted, window.succeeded) = (less(window.attempted), less(window.succeeded));
    window.failed = window.attempted.saturating_sub(window.succeeded);
}
