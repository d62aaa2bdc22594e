//! What scrapers get, with the parsers of Prometheus as judges, and the log as the other count.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use courser_telemetry::metrics::METRICS;
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, KeyType, OriginServer, Process, free_port, require, skip};
use serde_json::Value;

use crate::admin::url;
use crate::stage::{Stage, eventually, run, run_courser};

/// Samples of one metric by their labels.
type Samples = BTreeMap<String, f64>;

/// What a scrape says; `None`, after saying so, where curl is not installed.
fn scrape(url: &str, accept: &str) -> Option<String> {
    let mut curl = Command::new(require("curl")?);
    let scraped = run(curl.args(["--silent", "--fail", "--header", accept, &format!("{url}/metrics")]));
    assert!(scraped.status.success(), "{}", scraped.stderr);
    // Outputs are collected by lines; the end of the last one belongs to the format.
    Some(format!("{}\n", scraped.stdout.trim_end()))
}

fn samples(text: &str, metric: &str) -> Samples {
    let lines = text
        .lines()
        .filter(|line| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' '])));
    lines
        .map(|line| {
            let (labels, value) = line[metric.len()..].rsplit_once(' ').unwrap();
            (labels.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Connections that end in different ways, and the number of lines that they leave.
fn traffic(stage: &Stage, courser: &Courser) -> usize {
    for version in [Version::Tls12, Version::Tls13] {
        let client = stage.returning_client(courser, version);
        (0..3).for_each(|_| client.connect().unwrap().get(1000, true).unwrap());
    }
    let stranger = Client::new(courser.address(), Version::Tls12, KeyType::Rsa2048, Resume::Never);
    assert!(stranger.connect().is_err(), "there is no certificate for it");
    7
}

#[test]
fn the_parsers_of_prometheus_take_both_formats() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let lines = traffic(&stage, &courser);
    let _ = courser.connections(lines);
    let Some(plain) = scrape(&url, "Accept: */*") else { return };
    if let Some(promtool) = require("promtool") {
        let mut command = Command::new(promtool);
        let checked = Process::start_with_input(command.args(["check", "metrics"]), plain).finish();
        assert!(
            checked.status.success() && checked.stderr.is_empty(),
            "{}{}",
            checked.stdout,
            checked.stderr
        );
    }
    let open = scrape(&url, "Accept: application/openmetrics-text; version=1.0.0").unwrap();
    let Some(python) = require("python3") else { return };
    let mut command = Command::new(python);
    let judged = Process::start_with_input(command.args(["-c", STRICT]), open).finish();
    if judged.stderr.contains("No module named") {
        skip("Python's prometheus_client is not installed");
        return;
    }
    assert!(judged.status.success(), "{}", judged.stderr);
}

/// The strict parser of OpenMetrics by the makers of Prometheus.
const STRICT: &str = "import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
assert sum(len(family.samples) for family in parse(sys.stdin.read())) > 100";

/// Each line of the log is in the counters, under the same names, once.
#[test]
fn counters_agree_with_the_log_and_outlive_a_reload() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock").display().to_string();
    let courser = stage
        .courser_of(2)
        .backend(origin.backend())
        .args(["--admin", "127.0.0.1:0", "--control", &control])
        .start();
    let url = url(&courser);
    let lines = traffic(&stage, &courser);
    let reloaded = run_courser(&["reload", "--control", &control]);
    assert!(reloaded.status.success(), "{}", reloaded.stderr);
    let lines = lines + traffic(&stage, &courser);
    let mut expected: [Samples; 3] = Default::default();
    for line in courser.connections_json(lines) {
        let text = |field: &str| line[field].as_str().unwrap_or("none").to_owned();
        let mut count = |metric: usize, labels: String| *expected[metric].entry(labels).or_default() += 1.0;
        let (listener, host) = (text("listener"), text("host"));
        count(
            0,
            format!(
                "{{listener=\"{listener}\",cause=\"{}\",reason=\"{}\"}}",
                text("cause"),
                text("close_reason")
            ),
        );
        let result = if line["session"].is_null() { "CIPHER_SUITE_MISMATCH" } else { "SUCCESS" };
        let (kind, version) = (text("session"), text("version"));
        let labels = format!("listener=\"{listener}\",host=\"{host}\",kind=\"{kind}\",version=\"{version}\"");
        count(1, format!("{{{labels},result=\"{result}\"}}"));
        if result == "SUCCESS" {
            let (suite, group, scheme) = (text("suite"), text("group"), text("scheme"));
            let labels = format!("suite=\"{suite}\",group=\"{group}\",scheme=\"{scheme}\"");
            count(2, format!("{{listener=\"{listener}\",version=\"{version}\",{labels}}}"));
        }
    }
    let Some(text) = scrape(&url, "Accept: */*") else { return };
    let metrics =
        ["courser_connections_total", "courser_handshakes_total", "courser_handshakes_negotiated_total"];
    for (metric, expected) in metrics.into_iter().zip(expected) {
        let mut found = samples(&text, metric);
        found.retain(|_, count| *count > 0.0);
        assert_eq!(found, expected, "{metric}");
    }
    assert_eq!(samples(&text, "courser_config_generation"), BTreeMap::from([(String::new(), 2.0)]));
    let open: f64 = samples(&text, "courser_open_connections").values().sum();
    assert!(open == 0.0, "{open}");
    let busy = samples(&text, "courser_worker_busy_seconds_total");
    assert!(busy.len() == 2 && busy.values().sum::<f64>() > 0.0, "{busy:?}");
}

/// Connections that stay are counted by the step that they are in.
#[test]
fn open_connections_are_where_they_wait() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let silent = std::net::TcpStream::connect(courser.address()).unwrap();
    let open = stage.client(&courser, Version::Tls13).connect().unwrap();
    if require("curl").is_none() {
        return;
    }
    let state = |state: &str| {
        let text = scrape(&url, "Accept: */*").unwrap();
        samples(&text, "courser_open_connections")[&format!("{{listener=\"{LISTENER}\",state=\"{state}\"}}")]
    };
    eventually("one waits for a ClientHello and one is relayed", || state("hello") + state("relay") > 1.5);
    drop((silent, open));
    eventually("both are gone", || state("hello") + state("relay") < 0.5);
}

/// The name of a listener that was made of flags.
const LISTENER: &str = "default";

#[test]
fn a_real_prometheus_scrapes_it() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let lines = traffic(&stage, &courser);
    let _ = courser.connections(lines);
    let (Some(prometheus), Some(curl)) = (require("prometheus"), require("curl")) else { return };
    let target = url.strip_prefix("http://").unwrap();
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: courser, static_configs: [{{targets: ['{target}']}}]}}]"
    );
    let (file, port) = (stage.folder.write("prometheus.yml", text), free_port());
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", stage.folder.join("data").display()));
    let _prometheus = Process::start(command.arg(format!("--web.listen-address=127.0.0.1:{port}")));
    let ask = format!(
        "http://127.0.0.1:{port}/api/v1/query?query=sum(courser_handshakes_total%7Bresult%3D%22SUCCESS%22%7D)"
    );
    eventually("Prometheus has the handshakes", || {
        let asked = run(Command::new(&curl).args(["--silent", &ask]));
        let answer: Value = serde_json::from_str(&asked.stdout).unwrap_or_default();
        answer["data"]["result"][0]["value"][1] == "6"
    });
}

/// Each alert fires where it should, and names metrics that are there; so does the dashboard.
#[test]
fn alerts_fire_and_the_dashboard_shows_what_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    for text in [read("courser.rules.yml"), read("grafana.json")] {
        for part in text.split("courser_").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            let name = format!("courser_{name}");
            let name = name.strip_suffix("_bucket").unwrap_or(&name);
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name} is no metric");
        }
    }
    let Some(promtool) = require("promtool") else { return };
    let tested =
        run(Command::new(promtool).args(["test", "rules", "courser.rules.test.yml"]).current_dir(&folder));
    assert!(tested.status.success(), "{}{}", tested.stdout, tested.stderr);
}
