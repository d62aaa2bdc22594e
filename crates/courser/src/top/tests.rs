//! Frames as text, of a status that has something in each section.

use courser_telemetry::CloseReason;

use super::*;
use crate::status::recent::FailureRow;

/// What a program has said.
const STATUS: &str = include_str!("status.json");

fn status() -> Status {
    serde_json::from_str(STATUS).unwrap()
}

fn view() -> View {
    let mut view = View::default();
    for rate in [10.0, 40.0, 80.0, 160.0] {
        let mut status = status();
        let recent = status.recent.as_mut().unwrap();
        recent.handshakes.insert("full".to_owned(), rate);
        view.take(status);
    }
    view
}

/// The frame as it was looked at, or, with `UPDATE_SNAPSHOTS=1`, as it is from now on.
#[track_caller]
fn assert_frame(name: &str, found: &str) {
    let path = format!("{}/src/top/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{path} is not this frame:\n{found}");
}

#[test]
fn a_frame_is_what_the_status_says() {
    assert_frame("wide", &text(&view(), 120));
    assert_frame("narrow", &text(&view(), 60));
}

#[test]
fn before_an_answer_and_without_one_it_says_so() {
    assert_eq!(text(&View::default(), 40), "Asking the program.\n");
    let mut view = view();
    view.silence = Some("connection refused".to_owned());
    assert!(text(&view, 100).starts_with("✗ No word from the program (connection refused); asking again.\n"));
}

#[test]
fn a_screen_shows_what_it_has_room_for_and_scrolls_to_the_end() {
    let (mut view, area) = (view(), Rect::new(0, 0, 80, 24));
    let screen = |view: &View| {
        let mut buffer = Buffer::empty(area);
        view.render(area, &mut buffer);
        let rows: Vec<String> = buffer
            .content()
            .chunks(80)
            .map(|row| {
                row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
            })
            .collect();
        rows
    };
    let first = screen(&view);
    assert!(first[0].starts_with("edge-1") && first[23].contains("q to quit"), "{first:#?}");
    assert!(first[23].starts_with(&format!("{} more lines below", view.furthest(80, 24))), "{first:#?}");
    view.scroll = view.furthest(80, 24);
    let last = screen(&view);
    assert!(last[22].contains("expired") && last[23].starts_with('↑'), "{last:#?}");
    // No size makes it panic.
    for (width, height) in [(0, 0), (1, 1), (3, 2), (500, 1)] {
        let area = Rect::new(0, 0, width, height);
        view.render(area, &mut Buffer::empty(area));
    }
}

#[test]
fn each_close_reason_has_its_own_name() {
    let mut status = status();
    let row = |reason: &CloseReason| {
        let (cause, reason) = (reason.cause().name().to_owned(), reason.name().to_owned());
        FailureRow { reason, cause, count: 1, rate: 0.0 }
    };
    status.failures = CloseReason::ALL.iter().map(row).collect();
    let mut view = View::default();
    view.take(status);
    let text = text(&view, 100);
    for reason in CloseReason::ALL {
        let is_row = |line: &str| line.split_whitespace().take(2).eq([reason.name(), reason.cause().name()]);
        assert!(text.lines().any(is_row), "{reason} in\n{text}");
    }
}

#[test]
fn names_of_others_move_no_cursor() {
    let mut status = status();
    status.backends.servers[0].server = "evil\u{1b}[2Jname\n\u{7}".to_owned();
    status.findings[0].what = "a\u{1b}]0;title\u{7}b".to_owned();
    let mut view = View::default();
    view.take(status);
    let text = text(&view, 100);
    assert!(text.contains("evil") && !text.contains(['\u{1b}', '\u{7}']), "{text}");
}

#[test]
fn the_page_has_the_same_sections_in_the_same_order() {
    let page = include_str!("../admin/page.html");
    let titles = page.split("<h2>").skip(1).map(|part| part[..part.find('<').unwrap()].to_owned());
    let titles: Vec<String> = titles.collect();
    let text = text(&view(), 100);
    let starts =
        titles.iter().map(|title| text.find(&format!("\n{title}")).unwrap_or_else(|| panic!("no {title}")));
    assert!(titles.len() == 10 && starts.is_sorted(), "{titles:?}");
}
