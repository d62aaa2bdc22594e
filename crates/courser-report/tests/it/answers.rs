//! The first screen and the page over all suites: each figure in a sentence is one of the record, or of those published.

use std::fs;
use std::path::{Path, PathBuf};

use courser_record::lab::{Block, CellState, ServerShare, Value};
use courser_record::{Completions, Lab};
use courser_report::ranking::{Outcome, cell_value, figure_specs, rankings};
use courser_report::text::Style;
use courser_report::{answer, figure, html, lab_text, labels, markdown};

use crate::labs::{capacity, latency, overload, primitives};

/// Suites' own prose is written before anything is measured: a figure in it is of no record.
#[test]
fn prose_of_suites_states_no_figure() {
    let mut stating = Vec::new();
    for path in files("suites", "toml") {
        let suite: toml::Table = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let prose = suite.get("analysis").and_then(toml::Value::as_str).unwrap_or_default();
        let paragraphs: Vec<&str> =
            prose.trim().split("\n\n").filter(|text| !text.is_empty()).map(str::trim).collect();
        if labels::without_figures(prose) != paragraphs {
            stating.push(path);
        }
    }
    assert!(stating.is_empty(), "{stating:?}");
}

#[test]
fn prose_of_a_record_that_states_a_figure_is_on_no_page() {
    let mut lab = small();
    // What the suite printed where 5.4 was published.
    lab.suite.analysis = "The key decides.\n\nThe published factor between the columns was seven.".to_owned();
    let labs = [lab];
    for text in [html::render(&labs), markdown::render(&labs), lab_text::render(&labs, Style::default())] {
        assert!(!text.contains("was seven"), "{text}");
    }
}

#[test]
fn sentences_on_the_first_screen_are_short() {
    for name in NAMES {
        let lab = record(name);
        let answer = answer::answer(&lab).unwrap();
        assert_eq!(answer.sentences.len(), 3, "{name}: {:?}", answer.sentences);
        for sentence in answer.sentences.iter().chain(&labels::verdict(&lab).sentences) {
            assert!(sentence.split_whitespace().count() <= 25, "{name}: {sentence}");
        }
    }
}

#[test]
fn where_clients_leave_the_answer_is_who_serves_most_at_the_highest_load() {
    let answer = answer::answer(&overload()).unwrap();
    let row = |row: &answer::Row| {
        let of = |index: usize| row.cells[index].0.clone();
        (row.name.clone(), of(1), of(3).split('\u{a0}').next().unwrap_or_default().to_owned())
    };
    let rows: Vec<_> = answer.rows.iter().map(row).collect();
    let wanted = [("courser", "98 %", "first"), ("hitch", "20 %", "×"), ("nginx", "0 %", "serves none")];
    assert_eq!(rows, wanted.map(|(name, part, place)| (name.to_owned(), part.to_owned(), place.to_owned())));
    let beyond = "At 1000 % of its capacity courser serves 98 % of it; nginx serves 0 %.";
    assert_eq!(answer.sentences[1], beyond);
    assert!(answer.sentences[2].starts_with("Choose courser to serve most: "), "{:?}", answer.sentences);
}

#[test]
fn each_figure_in_a_sentence_is_in_the_data() {
    for name in ["capacity", "handshake-flood", "overheads"] {
        let lab = record(name);
        let known = known(&lab);
        for sentence in answer::answer(&lab).unwrap().sentences {
            for number in numbers(&sentence) {
                assert!(known.contains(&number), "{name}: {number} in {sentence:?}");
            }
        }
    }
}

/// The published figures stand in the file of their suite, as they were printed.
#[test]
fn published_figures_are_those_that_were_printed() {
    for published in answer::published() {
        let text = fs::read_to_string(root(&format!("record/published/{}.toml", published.suite))).unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        let tables = file["table"].as_array().unwrap();
        let table = tables.iter().find(|table| table["id"].as_str() == Some(&published.table)).unwrap();
        let column = texts(&table["columns"]).iter().position(|name| *name == published.column).unwrap();
        let rows = table["row"].as_array().unwrap();
        let row = rows.iter().find(|row| row["label"].as_str() == Some(&published.row)).unwrap();
        let cell = texts(&row["cells"])[column].clone();
        assert!(cell.contains(&published.printed), "{}: {cell}", published.suite);
        let number: f64 = published.printed.replace(',', "").replace(" K", "000").parse().unwrap();
        assert!((number - published.figure).abs() < 1e-9, "{}: {number}", published.suite);
    }
}

#[test]
fn an_operation_of_microseconds_is_no_zero_and_says_whether_it_was_repeated() {
    let page = html::render(&[one_pass(record("primitives"), |_| None)]);
    assert!(page.contains(" us") && page.contains("not repeated"), "ECDSA P-256, sign");
    assert!(!page.contains("0.0000"), "{:?}", page.find("0.0000").map(|at| &page[at - 300..at + 20]));
}

#[test]
fn repeats_within_a_row_are_not_called_an_interval_of_it() {
    let text = html::render(&[one_pass(record("overheads"), |value| Some((value * 0.9, value * 1.1)))]);
    assert!(text.contains("repeats ") && text.contains("changed a row by a factor of up to 1."), "{text}");
}

/// A record of one pass over its rows, each with these ends of its repeats.
fn one_pass(mut lab: Lab, ends: impl Fn(f64) -> Option<(f64, f64)>) -> Lab {
    for cell in &mut lab.cells {
        cell.blocks.truncate(1);
        let windows = cell.blocks.iter_mut().flat_map(|block| &mut block.windows);
        for figure in windows.flat_map(|window| &mut window.figures) {
            (figure.low, figure.high) = ends(figure.value).unzip();
        }
    }
    lab
}

/// Rows drift by a factor of 1.8 while the repeats within each agree to the digit.
#[test]
fn passes_over_all_rows_have_their_drift_in_the_interval() {
    let mut lab = record("overheads");
    for cell in lab.cells.iter_mut().filter(|cell| !cell.blocks.is_empty()) {
        let scaled = |factor: f64| {
            let mut block = cell.blocks[0].clone();
            for figure in block.windows.iter_mut().flat_map(|window| &mut window.figures) {
                figure.value *= factor;
                (figure.low, figure.high) = (Some(figure.value), Some(figure.value));
            }
            block
        };
        cell.blocks = [1.0, 1.8, 1.2].map(scaled).to_vec();
    }
    let page = html::render(&[lab.clone()]);
    assert!(
        page.contains("median of 3 passes over all rows") && !page.contains("Repeats followed"),
        "{page}"
    );
    let case = &lab.cases[0].id;
    let spec = figure_specs(&lab, case).remove(0);
    let seen = cell_value(&lab, lab.cells.iter().find(|cell| cell.case == *case).unwrap(), &spec);
    let spread = seen.estimate().unwrap().spread.unwrap();
    assert!(spread.is_interval && spread.high / spread.low > 1.8, "{spread:?}");
}

#[test]
fn more_than_all_of_the_limit_is_marked() {
    let mut lab = small();
    for limit in lab.cases.iter_mut().filter_map(|case| case.limit.as_mut()) {
        limit.us_per_connection = 87.0;
    }
    let page = html::render(&[lab]);
    assert!(page.contains("102 %") && page.contains("the limit was timed at another moment"));
    assert!(!page.contains("no terminator can do with less"));
}

#[test]
fn rates_that_differ_are_not_called_the_same() {
    let mut lab = record("continuous-rate");
    for cell in lab.cells.iter_mut().filter(|cell| cell.case == "steady-500-s" && cell.target == "nginx") {
        let windows = cell.blocks.iter_mut().flat_map(|block| &mut block.windows);
        windows.for_each(|window| window.completed = window.completed.map(half));
    }
    let all = rankings(&lab);
    let steady = all.iter().find(|ranking| ranking.case == "steady-500-s").unwrap();
    let order = labels::order(&lab, steady);
    assert!(!order.contains("same rate") && order.contains("of rates that differ: courser "), "{order}");
}

fn half(of: Completions) -> Completions {
    Completions { transactions: of.transactions / 2, connections: of.connections / 2, ..of }
}

#[test]
fn processor_time_is_marked_where_most_failed() {
    let mut lab = small();
    for cell in lab.cells.iter_mut().filter(|cell| cell.target == "nginx") {
        for window in cell.blocks.iter_mut().flat_map(|block| &mut block.windows) {
            window.failed = window.succeeded * 32;
            window.attempted = window.succeeded + window.failed;
        }
    }
    let labs = [lab];
    for text in [html::render(&labs), markdown::render(&labs)] {
        assert!(text.contains("97 % of its transactions failed"), "{text}");
    }
    assert!(!html::render(&[small()]).contains("of its transactions failed"));
}

#[test]
fn a_suite_that_was_cut_says_so_on_top() {
    let mut lab = small();
    lab.envelope.cut = Some("interrupted".to_owned());
    lab.cells[0].state = CellState::Pending;
    let labs = [lab];
    let page = html::render(&labs);
    let header = &page[page.find("<header>").unwrap()..page.find("</header>").unwrap()];
    assert!(header.contains("Cut short (interrupted): "), "{header}");
    assert!(markdown::render(&labs).contains("Cut short"));
    assert!(lab_text::render(&labs, Style::default()).contains("Cut short"));
}

#[test]
fn a_title_stands_once() {
    let lab = small();
    let page = html::render(std::slice::from_ref(&lab));
    let body = &page[page.find("<body>").unwrap()..];
    assert_eq!(body.matches(&lab.suite.title).count(), 1);
}

#[test]
fn the_page_over_all_suites_is_small_and_leads_to_each() {
    let names = ["capacity", "handshake-flood", "overheads"];
    let labs: Vec<Lab> = names.iter().map(|name| record(name)).collect();
    let files: Vec<String> = names.iter().map(|name| format!("{name}.html")).collect();
    let pages: Vec<html::Page<'_>> =
        files.iter().zip(&labs).map(|(file, lab)| html::Page { lab, file }).collect();
    let page = html::index(&pages);
    assert!(page.len() < html::LIMIT && !page.contains("data:application"), "{}", page.len());
    for (file, lab) in files.iter().zip(&labs) {
        assert!(page.contains(&format!("href=\"{file}\"")), "{file}");
        assert!(page.contains(&lab.suite.question.replace('&', "&amp;")), "{file}");
    }
    assert!(page.contains("1,500") && page.contains("2011: stud"), "{page}");
}

/// Shells sort names in one order or another.
#[test]
fn the_record_named_like_its_suite_leads_in_any_order() {
    let (quick, historic) = (record("capacity"), record("capacity-historic"));
    let page = |lab, file| html::Page { lab, file };
    let (quick, historic) = (page(&quick, "capacity.html"), page(&historic, "capacity-historic.html"));
    for pages in [[quick, historic], [historic, quick]] {
        let drawn = html::index(&pages);
        let row = &drawn[drawn.find("<tbody>").unwrap()..];
        assert!(row.find("capacity.html").unwrap() < row.find("capacity-historic.html").unwrap());
    }
}

/// Cases of libraries are laid side by side, with what one is to the other.
#[test]
fn libraries_have_an_answer_of_their_own() {
    let answer = answer::answer(&primitives()).unwrap();
    assert_eq!(answer.heads, ["aws-lc-rs", "openssl", "aws-lc-rs is as fast"]);
    assert_eq!(answer.rows[0].cells[2].0, "×\u{a0}1.25");
    assert!(answer.plot.is_some());
}

/// Medians and factors need not agree on who is next: what rounds add to all is in medians, and not in factors.
#[test]
fn the_next_one_is_that_with_the_smallest_factor_wherever_it_is_named() {
    let mut lab = small();
    // The machine halves its speed after three rounds, and HAProxy, which is the slower one, has none after that.
    for cell in &mut lab.cells {
        let blocks = if cell.target == "haproxy" { 3 } else { 6 };
        cell.blocks.truncate(blocks);
        for block in &mut cell.blocks {
            block.windows[0].window_us *= if block.round < 3 { 10 } else { 20 };
            block.windows[0].window_us /= if cell.target == "haproxy" { 9 } else { 10 };
        }
    }
    let answer = answer::answer(&lab).unwrap();
    let factor = |row: &answer::Row| {
        let text = row.cells.last().unwrap().0.clone();
        text.strip_prefix("×\u{a0}").and_then(|factor| factor.parse::<f64>().ok())
    };
    let factors = answer.rows.iter().filter_map(|row| Some((factor(row)?, row.name.clone())));
    let (least, next) = factors.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert_eq!((answer.rows[1].name.as_str(), next.as_str()), ("haproxy", "nginx"));
    let wanted = format!("courser, ×\u{a0}{least:.2} ahead of {next}");
    assert_eq!(answer.first, Some(wanted));
    let sentence = answer.sentences.last().unwrap();
    assert!(sentence.contains(&format!("of {next}, the next here, by {least:.2} times")), "{sentence}");
    assert!(labels::verdict(&lab).sentences[0].contains(&format!("by a factor of {least:.2} (")));
}

#[test]
fn who_is_first_is_named_by_the_title_and_rounds_are_counted() {
    let mut lab = overload();
    lab.targets[1].title = "courser, by hand".to_owned();
    let first = |lab: &Lab| answer::answer(lab).unwrap().first.unwrap();
    for rounds in [1, 2] {
        for cell in lab.cells.iter_mut().filter(|cell| cell.case == "load-1000 %") {
            cell.blocks.truncate(2);
            let served = if cell.target == "courser" { 98.0 } else { 0.0 };
            cell.blocks.iter_mut().for_each(|block| block.windows[0].figures[0].value = served);
        }
        lab.cells.iter_mut().for_each(|cell| cell.blocks.truncate(rounds));
        let wanted = ["not repeated", "not beyond doubt after 2 rounds"][rounds - 1];
        assert_eq!(first(&lab), format!("“courser, by hand”, {wanted}"));
        lab = overload();
        lab.targets[1].title = "courser, by hand".to_owned();
    }
}

#[test]
fn where_a_part_of_the_capacity_is_offered_the_answer_is_how_long_clients_wait() {
    let answer = answer::answer(&latency()).unwrap();
    let heads = [
        "median response at 50 %",
        "p99 response at 50 %",
        "median response at 80 %",
        "p99 response at 80 %",
    ];
    assert_eq!(answer.heads[..4], heads);
    assert_eq!(answer.heads[4], "behind the first by p99 response at 50 %");
    let row = answer.rows.iter().find(|row| row.name == "courser").unwrap();
    assert!(row.cells[0].0.ends_with(" us") && row.cells[1].0.ends_with(" ms"), "{row:?}");
    assert_eq!((&*row.cells[2].0, &*row.cells[3].0), ("inconclusive", "inconclusive"));
    assert!(answer.notes[1].starts_with("80 %: Inconclusive of courser: client-bound"), "{:?}", answer.notes);
    assert!(answer.sentences[1].starts_with("At 50 % of its capacity half of courser's clients wait"));
    let choice = &answer.sentences[2];
    assert!(choice.starts_with("Choose courser to wait least: ahead of all in 1 of 2 cases"), "{choice}");
    let verdict = labels::verdict(&latency()).sentences;
    assert!(verdict[0].contains("courser is first in 1 of 2"), "{verdict:?}");
    assert!(verdict[1].contains("no verdict in 1 of 2: a target's figures are inconclusive"), "{verdict:?}");
}

#[test]
fn a_maximum_of_one_staircase_says_so() {
    let page = html::render(&[capacity()]);
    let table = &page[page.find("Four figures of the staircase").unwrap()..];
    assert!(table[..table.find("</table>").unwrap()].contains("(one round)"));
    let row = |lab: &Lab| answer::answer(lab).unwrap().rows[0].cells[2].1.clone();
    let mut lab = capacity();
    assert_eq!(row(&lab).as_deref(), Some("one round"));
    let half = ServerShare { share: 0.5, quota_us: 2500, period_us: 5000 };
    lab.cells.iter_mut().for_each(|cell| cell.server_share = Some(half));
    assert_eq!(row(&lab).as_deref(), Some("one round"), "of a whole core in proportion");
    for cell in lab.cells.iter_mut().filter(|cell| cell.case == "stairs") {
        cell.blocks = [0, 1].map(|round| Block { round, ..cell.blocks[0].clone() }).to_vec();
    }
    assert_eq!(row(&lab), None);
}

const NAMES: [&str; 3] = ["capacity", "offload", "overheads"];

/// A case at saturation, of all targets.
fn small() -> Lab {
    let mut lab = capacity();
    lab.cases.retain(|case| case.id == "tls13-ecdsa");
    lab.cells.retain(|cell| cell.case == "tls13-ecdsa");
    lab
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(root(folder)).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|own| own == extension)).collect()
}

fn record(name: &str) -> Lab {
    Lab::from_json(fs::read(root(&format!("record/{name}.json"))).unwrap()).unwrap()
}

fn texts(list: &toml::Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What stands for itself: not within a name, as `TLS 1.3`, `P-256`, `RSA-1024`, `8 bytes`.
fn numbers(sentence: &str) -> Vec<String> {
    let conditions = ["TLS 1.3", "TLS 1.2", "TLS 1.0", "8 bytes"].iter();
    let text = conditions.fold(sentence.to_owned(), |text, name| text.replace(name, ""));
    let words = text.split_whitespace().map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()));
    words
        .filter(|word| word.replace([',', '.'], "").bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// All figures that a sentence may state, as they are printed.
fn known(lab: &Lab) -> Vec<String> {
    let mut known = Vec::new();
    let digits = |text: String| text.split_whitespace().next().unwrap().to_owned();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    for cell in &lab.cells {
        for spec in figure_specs(lab, &cell.case) {
            let Some(found) = cell_value(lab, cell, &spec).estimate().map(|found| found.value) else {
                continue;
            };
            known.extend([figure::number(Some(found.round())), digits(figure::time(Some(found)))]);
            // Sentences speak of whole cores.
            let share = cell.server_share.map_or(1.0, |held| held.share);
            known.push(figure::number(Some((found / share).round())));
            known.extend([digits(figure::time(Some(found * 1e3))), percent(found), percent(1.0 - found)]);
        }
    }
    for cell in &lab.cells {
        let of = |value: Value| cell_value(lab, cell, &value.into()).estimate().map(|found| found.value);
        if let (Some(kernel), Some(limit)) = (of(Value::KernelShare), of(Value::LimitShare)) {
            let least = lab.case(&cell.case).and_then(|case| case.limit.as_ref()).unwrap();
            let limit = limit * least.cryptography_us() / least.us_per_connection;
            known.extend([percent(limit), percent(1.0 - kernel - limit)]);
        }
    }
    let all = rankings(lab);
    for pair in all.iter().flat_map(|ranking| &ranking.pairs) {
        match pair.outcome {
            Outcome::Ahead { factor, low, high } => known.extend([factor, low, high].map(labels::factor)),
            Outcome::NotSeen { min_detectable } => {
                known.extend(labels::detectable(min_detectable).split_whitespace().map(str::to_owned));
            }
            Outcome::TooFew { rounds } => known.push(rounds.to_string()),
            Outcome::NotCompared(_) => {}
        }
    }
    known.extend((0..=all.len()).map(|count| count.to_string()));
    for published in answer::published().iter().filter(|published| published.suite == lab.suite.name) {
        let then = published.figure / published.cores;
        known.extend([
            published.year.to_string(),
            figure::number(Some(then)),
            digits(figure::time(Some(then * 1e3))),
        ]);
    }
    if let Some(since) = answer::answer(lab).unwrap().since {
        known.extend([labels::factor(since.now / since.then), labels::factor(since.then / since.now)]);
    }
    if let Some(answer) = answer::answer(lab) {
        known.extend(
            answer
                .rows
                .iter()
                .flat_map(|row| &row.cells)
                .map(|(text, _)| text.trim_start_matches("×\u{a0}").to_owned()),
        );
    }
    known
}
