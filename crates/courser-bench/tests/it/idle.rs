//! `idle`: memory of connections that were opened slowly, and of those that were opened at once.

use courser_testkit::{Fault, FaultyServer};

use crate::support::Judged;
use crate::support::{finished, url};

#[test]
fn memory_is_measured_opened_slowly_and_at_once() {
    let server = FaultyServer::start(Fault::None);
    // The server is a part of this process.
    let pid = std::process::id().to_string();
    let of = ["idle", &url(server.address()), "-c", "20", "--open-rate", "50", "--server-pid", &pid];
    let judged = Judged::of(&finished(&[&of[..], &["--duration", "500ms", "--json"]].concat()));
    let runs = judged.record["runs"].as_array().unwrap();
    let labels: Vec<&str> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["idle, opened at 50/s", "idle, opened at once"], "{:#}", judged.record);
    // Opened evenly over 400 ms, and then held.
    assert_eq!(judged.total("/window_us"), 900_000);
    for run in runs {
        assert_eq!(run["server"]["idle_memory"]["connections"], 20, "{run:#}");
    }
}
