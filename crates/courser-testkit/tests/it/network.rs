//! Hosts on a segment reach each other, and can be cut off.

use std::process::Command;

use courser_testkit::network::{Host, Segment, enter_namespace};

fn reaches(from: &Host, to: &str) -> bool {
    let script = format!("exec 3<>/dev/tcp/{to}/7");
    let mut command: Command = from.command("timeout");
    let output = command.args(["0.5", "bash", "-c", &script]).output().expect("timeout is installed");
    // Refused is an answer; silence is none.
    String::from_utf8_lossy(&output.stderr).contains("refused")
}

#[test]
fn hosts_on_a_segment_reach_each_other_unless_they_are_unplugged() {
    if !enter_namespace("network::hosts_on_a_segment_reach_each_other_unless_they_are_unplugged") {
        return;
    }
    let segment = Segment::new(2);
    let [first, second] = segment.hosts() else { panic!("two were requested") };
    assert!(reaches(first, "10.83.0.2") && reaches(second, "fd83::1"));
    second.unplug();
    assert!(!reaches(first, "10.83.0.2"));
    second.plug_in();
    assert!(reaches(first, "10.83.0.2"));
}
