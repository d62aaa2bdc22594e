//! Key files and state files, written by hand or by half: what is wrong is named, and what is secret is not repeated.

use courser_session::{EpochLength, FleetKey, FleetState};

use crate::{HOUR, NOW, hourly};

fn refusal(text: &str) -> String {
    FleetKey::parse(text).unwrap_err().to_string()
}

/// A key file with one part replaced.
fn with(old: &str, new: &str) -> String {
    let text = hourly(1).to_text();
    assert!(text.contains(old));
    text.replacen(old, new, 1)
}

#[test]
fn a_new_key_is_written_and_read() {
    let key = FleetKey::generate(EpochLength::DEFAULT, NOW).unwrap();
    let text = key.to_text();
    assert!(text.starts_with('#') && text.contains("epoch-seconds = 28800\n"));
    let read = FleetKey::parse(&text).unwrap();
    assert_eq!((read.id(), read.to_text()), (key.id(), text));
    assert_ne!(FleetKey::generate(EpochLength::DEFAULT, NOW).unwrap().id(), key.id());
}

#[test]
fn blanks_comments_and_the_order_of_lines_do_not_count() {
    let text = hourly(1).to_text();
    let lines: Vec<_> = text.lines().rev().map(|line| format!("  {line}\r\n\r\n# more\n")).collect();
    assert_eq!(FleetKey::parse(&lines.concat()).unwrap().to_text(), text);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let secret = "01".repeat(32);
    let cases = [
        (with("key-1", "key-2"), "line 3: the format is not `courser-fleet-key-1`"),
        (with("fleet = ", "fleets = "), "the line `fleet = …` is missing"),
        (with("fleet = 01", "fleet = "), "line 4: `fleet` must be 16 hexadecimal digits"),
        (with("3600", "59"), "line 5: `epoch-seconds` must be a number from 60 to 604800"),
        (with("3600", "+3600x"), "line 5: `epoch-seconds` must be a number from 60 to 604800"),
        (with("origin = ", "origin = -"), "line 6: `origin` must be a time in seconds since 1970"),
        (with(&secret, &secret[1..]), "line 7: `secret` must be 64 hexadecimal digits"),
        (with(&secret, &format!("{secret}0")), "line 7: `secret` must be 64 hexadecimal digits"),
        (with(&secret, &"é".repeat(32)), "line 7: `secret` must be 64 hexadecimal digits"),
        (with(&format!("secret = {secret}"), &secret), "line 7 is not one that belongs here"),
        (format!("{}colour = blue\n", &*hourly(1).to_text()), "line 8 is not one that belongs here"),
        (format!("{}origin = 5\n", &*hourly(1).to_text()), "line 8: `origin` is there twice"),
        (String::new(), "the line `format = …` is missing"),
    ];
    for (text, problem) in cases {
        assert_eq!(
            refusal(&text),
            format!(
                "not a fleet's key: {problem}; copy it again from another host, or make a new one with `courser fleet \
                 keygen`"
            )
        );
    }
}

#[test]
fn a_state_is_not_a_key_nor_a_key_a_state() {
    let state = FleetState::from_key(&hourly(1), 2 * HOUR, NOW).unwrap().to_text();
    assert!(refusal(&state).contains("the format is not `courser-fleet-key-1`"));
    let refusal = FleetState::parse(&hourly(1).to_text()).unwrap_err().to_string();
    assert!(refusal.contains("the format is not `courser-fleet-state-1`"), "{refusal}");
    assert!(refusal.ends_with("take that of another member with `courser fleet export`"), "{refusal}");
}

#[test]
fn the_past_of_a_state_has_each_epoch_once_and_none_that_is_to_come() {
    let text = FleetState::from_key(&hourly(1), 2 * HOUR, NOW).unwrap().to_text();
    assert!(FleetState::parse(&text).is_ok());
    for (old, new) in [
        ("past = 998", "past = 999"),
        ("past = 999", "past = 998"),
        ("past = 999", "past = 1000"),
        ("past = 998", "past = 700"),
        ("past = 998 ", "past = 998"),
        ("past = 998 ", "past = 998 998 "),
        ("epoch = 1000", "epoch = 0"),
    ] {
        let refusal = FleetState::parse(&text.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(refusal.contains("`past` must be"), "{old} to {new}: {refusal}");
    }
    assert!(FleetState::parse(&text.replacen("epoch = 1000", "epoch = 4294967296", 1)).is_err());
}
