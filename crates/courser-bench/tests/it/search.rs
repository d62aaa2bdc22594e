//! `search`: what it says of a rate, and in what time.

use courser_testkit::{Fault, FaultyServer};
use serde_json::Value;

use crate::support::{finished, url};

#[test]
fn a_budget_holds_and_its_trials_are_numbered() {
    let server = FaultyServer::start(Fault::None);
    let url = url(server.address());
    let search = ["search", &url, "--rule", "avg<1us,loss<0.1%", "--from", "20", "--budget", "12s", "--json"];
    let run = finished(&search);
    assert!(run.stderr.contains("trial 1 of about "), "{run:?}");
    assert!(run.stderr.contains(" s left"), "{run:?}");
    let record: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|why| panic!("{why}: {run:?}"));
    let runs = record["runs"].as_array().unwrap();
    let at = |run: &Value, moment: &str| run["window"][moment].as_u64().unwrap();
    let took = at(runs.last().unwrap(), "end_unix_us") - at(&runs[0], "start_unix_us");
    // Trials are repeated where the machine was too busy, which the budget pays for.
    assert!(took <= 12_500_000, "{took} us: {:#}", run.stderr);
    let longest = runs.iter().map(|run| at(run, "steady_end_unix_us") - at(run, "start_unix_us")).max();
    assert!(longest.unwrap() <= 3_100_000, "{longest:?}");
    // A run on a busy machine is invalid, and the search then says so with another exit code.
    if runs.iter().all(|run| run["verdict"]["valid"] == true) {
        assert_eq!(run.status.code(), Some(7), "{run:?}");
        assert!(
            record["found"][0]["note"].as_str().unwrap().contains("broken at 20/s"),
            "{:#}",
            record["found"]
        );
    }
}

#[test]
fn a_budget_that_is_too_small_is_refused_with_the_least() {
    let run = finished(&["search", "https://127.0.0.1:1/", "--rule", "avg<1s", "--budget", "5s"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("a budget of 12 s or more"), "{run:?}");
}
