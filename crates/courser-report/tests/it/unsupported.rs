//! Figures and verdicts that a record does not support: no page has them.

use courser_record::lab::{Cell, Value, WindowResult};
use courser_record::{Completions, Lab};
use courser_report::labels;
use courser_report::ranking::{CellValue, NotCompared, Outcome, value_of};

use crate::labs::{capacity, overload};
use crate::ranking::ranking_of;

#[test]
fn what_is_offered_is_no_merit_where_clients_leave() {
    let lab = overload();
    let all_served = Outcome::NotCompared(NotCompared::AllServed);
    let below = ranking_of(&lab, "load-100 %");
    assert!(below.pairs.iter().all(|pair| pair.outcome == all_served && pair.min_detectable.is_none()));
    assert_eq!(labels::order(&lab, &below), "not compared: each target serves practically all clients.");
    let beyond = ranking_of(&lab, "load-1000 %");
    assert_eq!(
        (beyond.basis.value, beyond.basis.figure.as_deref()),
        (Value::Figure, Some("goodput of capacity"))
    );
    assert!(matches!(beyond.pair("courser", "hitch").unwrap().outcome, Outcome::Ahead { .. }));
    assert!(labels::order(&lab, &beyond).ends_with(" By goodput of capacity."));
    let verdict = labels::verdict(&lab).sentences;
    assert!(verdict.iter().any(|sentence| sentence.contains("not compared in 1 of 2")), "{verdict:?}");
}

#[test]
fn among_strangers_it_is_the_share_of_clients_that_are_served() {
    let mut lab = overload();
    lab.cases[1].dimensions.insert("beside".to_owned(), "slow hellos".to_owned());
    lab.cases[1].dimensions.insert("capacity".to_owned(), "30 %".to_owned());
    windows(&mut lab, "load-1000 %").for_each(|window| window.figures[0].name = "clients served".to_owned());
    let ranking = ranking_of(&lab, "load-1000 %");
    assert_eq!(ranking.basis.figure.as_deref(), Some("clients served"));
    assert!((ranking.places[0].estimate.value - 98.0).abs() < 1.0, "{:?}", ranking.places[0]);
}

#[test]
fn values_without_any_spread_have_no_interval_and_no_verdict() {
    let mut lab = overload();
    for cell in lab.cells.iter_mut().filter(|cell| cell.case == "load-1000 %") {
        let first = cell.blocks[0].windows.clone();
        cell.blocks.iter_mut().for_each(|block| block.windows = first.clone());
    }
    let ranking = ranking_of(&lab, "load-1000 %");
    let pair = ranking.pair("courser", "hitch").unwrap();
    assert_eq!((pair.outcome, pair.min_detectable), (Outcome::NotCompared(NotCompared::NoSpread), None));
    let order = labels::order(&lab, &ranking);
    assert!(order.contains("courser and hitch are not compared: values do not differ"), "{order}");
}

#[test]
fn a_closed_loop_that_is_over_before_its_clients_have_turned_says_nothing_of_cost() {
    let values = [Value::Tps, Value::Handshakes, Value::Cpu, Value::TpsOfCpu, Value::LimitShare];
    let seen = |lab: &Lab, value: Value| value_of(lab, "tls13-rsa", "haproxy", &value.into());
    for (connections, handshakes, why) in [
        (2, 29, "of 64 clients at a time 2 connections ended in a block"),
        (120, 120, "of 64 clients at a time 120 connections ended in a block"),
        (400, 500, "400 connections ended while 500 handshakes were made"),
        (500, 400, "500 connections ended while 400 handshakes were made"),
    ] {
        let mut lab = capacity();
        served(&mut lab, "haproxy", connections, handshakes);
        for value in values {
            let CellValue::Inconclusive { reason, at_least: None, computed: None } = seen(&lab, value) else {
                panic!("{value:?}: {:?}", seen(&lab, value))
            };
            assert_eq!(reason, format!("too short: {why}"));
        }
        let ranking = ranking_of(&lab, "tls13-rsa");
        assert_eq!(ranking.basis.value, Value::Tps, "the others keep their rates");
        assert!(ranking.places.iter().all(|place| place.target != "haproxy"), "{ranking:?}");
        assert!(labels::order(&lab, &ranking).contains(" Inconclusive of haproxy: too short: "));
    }
    let mut lab = capacity();
    served(&mut lab, "haproxy", 400, 420);
    assert!(matches!(seen(&lab, Value::Cpu), CellValue::Value(_)));
    // Requests over connections that stay open, and handshakes of connections that failed.
    served(&mut lab, "haproxy", 2, 29);
    let case = lab.cases.iter_mut().find(|case| case.id == "tls13-rsa").unwrap();
    case.dimensions.insert("requests".to_owned(), "keep-alive".to_owned());
    assert!(matches!(seen(&lab, Value::Cpu), CellValue::Value(_)));
    let mut lab = capacity();
    served(&mut lab, "haproxy", 400, 500);
    of_target(&mut lab, "haproxy").blocks.iter_mut().for_each(|block| block.windows[0].failed = 100);
    assert!(matches!(seen(&lab, Value::Cpu), CellValue::Value(_)));
}

fn served(lab: &mut Lab, target: &str, connections: u64, full: u64) {
    for window in of_target(lab, target).blocks.iter_mut().flat_map(|block| &mut block.windows) {
        window.completed =
            Some(Completions { transactions: connections, connections, full, ..Default::default() });
    }
}

fn of_target<'a>(lab: &'a mut Lab, target: &str) -> &'a mut Cell {
    lab.cells.iter_mut().find(|cell| (&*cell.case, &*cell.target) == ("tls13-rsa", target)).unwrap()
}

fn windows<'a>(lab: &'a mut Lab, case: &'a str) -> impl Iterator<Item = &'a mut WindowResult> {
    let cells = lab.cells.iter_mut().filter(move |cell| cell.case == case);
    cells.flat_map(|cell| &mut cell.blocks).flat_map(|block| &mut block.windows)
}

/// The kernel counts ticks: a server that reads and writes sockets spends time in the kernel, however few are seen.
#[test]
fn few_ticks_do_not_tell_kernel_and_program_apart() {
    let seen = |user_us: u64, system_us: u64, odd: Option<u64>| {
        let mut lab = capacity();
        for block in &mut of_target(&mut lab, "haproxy").blocks {
            let system_us = odd.filter(|_| block.round == 0).unwrap_or(system_us);
            (block.windows[0].user_us, block.windows[0].system_us) = (Some(user_us), Some(system_us));
        }
        value_of(&lab, "tls13-rsa", "haproxy", &Value::KernelShare.into())
    };
    assert_eq!(seen(200_000, 100_000, None), CellValue::Unknown, "1.8 s of six blocks");
    assert_eq!(seen(900_000, 0, None), CellValue::Unknown);
    assert_eq!(seen(0, 900_000, None), CellValue::Unknown);
    assert_eq!(seen(900_000, 300_000, Some(0)), CellValue::Unknown, "one block has none");
    let CellValue::Value(share) = seen(300_000, 100_000, None) else { panic!() };
    assert!((share.value - 0.25).abs() < 1e-9, "{share:?}");
}
