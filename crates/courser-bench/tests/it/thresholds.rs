//! `load --fail-if` and `--prometheus-text`: a verdict for pipelines, and figures for whoever scrapes them.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use courser_testkit::{Fault, FaultyServer, Folder, skip};

use crate::support::{AT_ONCE, finished, judge, url};

#[test]
fn a_threshold_that_is_crossed_has_its_own_exit_code() {
    let server = FaultyServer::start(Fault::None);
    let load = |thresholds: &[&str]| {
        let flags = thresholds.iter().flat_map(|threshold| ["--fail-if", threshold]);
        let arguments: Vec<&str> = ["--connection-rate", "30"].into_iter().chain(flags).collect();
        judge("load", &server, &arguments)
    };
    // Whatever a busy machine does, responses take more than a microsecond.
    let judged = load(&["max>1us", "loss>99%", "handshakes<1000/s"]);
    let crossed: Vec<&str> = judged.texts("threshold-crossed").collect();
    assert_eq!(crossed.len(), 2, "{crossed:?}");
    assert!(
        crossed[0].starts_with("max>1us: ") && crossed[1].starts_with("handshakes<1000/s: "),
        "{crossed:?}"
    );
    let valid = judged.run()["verdict"]["valid"] == true;
    assert_eq!(judged.code, Some(if valid { 9 } else { 3 }));

    let judged = load(&["max>3000s", "loss>99%", "rate<1/s"]);
    assert!(!judged.has("threshold-crossed") && judged.code != Some(9), "{:?}", judged.code);
    let judged = load(&["p99>1us"]);
    assert!(judged.text("threshold-unknown").contains("more responses would tell"));
    assert_eq!(judged.code, Some(3), "a percentile of 30 responses is none");
}

#[test]
fn a_threshold_is_refused_at_its_place() {
    let load = ["load", "https://127.0.0.1:1/", "--rate", "1", "--fail-if"];
    for (text, said) in [("p99<50ms", "column 4: `p99` needs `>`"), ("los>1%", "no measure is called `los`")]
    {
        let run = finished(&[&load[..], &[text]].concat());
        assert_eq!(run.status.code(), Some(2), "{run:?}");
        assert!(run.stderr.contains(said) && run.stderr.contains("--fail-if"), "{run:?}");
    }
}

#[test]
fn prometheus_has_the_figures_of_the_record() {
    let (server, folder) = (FaultyServer::start(Fault::None), Folder::new());
    let path = folder.path().join("courser.prom");
    fs::write(&path, "of an earlier run").unwrap();
    let url = url(server.address());
    let to = ["--prometheus-text", path.to_str().unwrap(), "--fail-if", "max>1us", "--quiet"];
    let load = ["load", &url, "--connection-rate", "30", "--duration", "1s"];
    let run = finished(&[&load[..], &AT_ONCE, &to].concat());
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{why}: {run:?}"));
    let record: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let totals = &record["runs"][0]["totals"];
    for (metric, figure) in [
        ("courser_bench_requests{run=\"load\",outcome=\"succeeded\"}", &totals["requests"]["succeeded"]),
        (
            "courser_bench_connections{run=\"load\",outcome=\"attempted\"}",
            &totals["connections"]["attempted"],
        ),
        ("courser_bench_thresholds_crossed{run=\"load\"}", &1.into()),
        ("courser_bench_response_seconds_count{run=\"load\"}", &totals["requests"]["succeeded"]),
    ] {
        assert!(text.contains(&format!("\n{metric} {figure}\n")), "{metric} {figure}:\n{text}");
    }
    held_to_the_format(&text);
    let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(beside, ["courser.prom"], "nothing of the writing is left");
    checked_by_promtool(&text);
}

/// Each metric has its help and type once, before its samples, and they stand together.
fn held_to_the_format(text: &str) {
    let (mut current, mut seen) = ("", Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            current = help.split(' ').next().unwrap();
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {current} "));
            assert!(kind.is_some_and(|kind| ["gauge", "summary"].contains(&kind)), "{line}");
            assert!(!seen.contains(&current), "{current} comes twice");
            seen.push(current);
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(
            series.starts_with(&format!("{current}{{")) || series.starts_with(&format!("{current}_")),
            "{line}"
        );
        assert!(series.ends_with('}') && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(seen.len() > 8 && text.ends_with('\n'), "{text}");
}

fn checked_by_promtool(text: &str) {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        skip("promtool is not installed; the format is held by this test alone");
        return;
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}\n{text}", String::from_utf8_lossy(&checked.stderr));
}
