//! Who is ahead: what a ranking may say, and what it must not.

use courser_record::lab::{Cell, Measure, Value, WindowResult};
use courser_record::{Completions, Lab};
use courser_report::ranking::{CellValue, Kind, Outcome, Precision, Ranking, compared, rankings, value_of};
use courser_report::text::Style;
use courser_report::{lab_text, labels};

use crate::labs::{capacity, latency, seconds_of};

#[test]
fn a_clear_difference_is_told_and_a_small_one_is_not() {
    let lab = capacity();
    let ranking = ranking_of(&lab, "tls13-ecdsa");
    let names: Vec<&str> = ranking.places.iter().map(|place| place.target.as_str()).collect();
    assert_eq!(names[0], "courser", "{names:?}");
    assert!(!names.contains(&"nginx:stock"), "stock settings are a preset of their own");
    match ranking.pair("haproxy", "courser").unwrap().outcome {
        Outcome::Ahead { factor, low, high } => {
            assert!(low < 1.62 && 1.62 < high && high - low < 0.05, "{factor}");
        }
        other => panic!("{other:?}"),
    }
    let close = ranking.pair("haproxy", "nginx").unwrap().outcome;
    assert!(matches!(close, Outcome::NotSeen { min_detectable } if min_detectable > 0.001), "{close:?}");
}

#[test]
fn inconclusive_rates_rank_no_target() {
    let lab = capacity();
    let ranking = ranking_of(&lab, "big");
    assert_eq!(ranking.basis.value, Value::Cpu);
    assert!(ranking.basis.instead_of_rate.as_ref().unwrap().contains("client-bound"));
    assert_eq!(ranking.places[0].target, "courser", "less processor time is better");
    let CellValue::Inconclusive { computed: Some(computed), .. } =
        value_of(&lab, "big", "courser", &Value::Tps.into())
    else {
        panic!("the rate is inconclusive");
    };
    assert_eq!(computed.kind, Kind::Computed);
}

#[test]
fn a_rate_of_half_of_the_blocks_is_a_rate_and_of_fewer_is_none() {
    let mut lab = capacity();
    let cell =
        lab.cells.iter_mut().find(|cell| cell.case == "tls13-ecdsa" && cell.target == "courser").unwrap();
    let spoil = |index: usize, cell: &mut Cell| {
        cell.blocks[index].windows[0].inconclusive =
            Some("wrong experiment: 3 ClientHellos did not offer what was asked".to_owned());
    };
    (0..3).for_each(|index| spoil(index, cell));
    let seen = value_of(&lab, "tls13-ecdsa", "courser", &Value::Tps.into());
    assert!(matches!(&seen, CellValue::Value(found) if (found.blocks, found.of) == (3, 6)), "{seen:?}");
    let cell =
        lab.cells.iter_mut().find(|cell| cell.case == "tls13-ecdsa" && cell.target == "courser").unwrap();
    spoil(3, cell);
    let seen = value_of(&lab, "tls13-ecdsa", "courser", &Value::Tps.into());
    assert!(matches!(seen, CellValue::Inconclusive { .. }), "{seen:?}");
}

#[test]
fn blocks_in_which_the_generator_was_the_limit_are_lower_bounds() {
    let mut lab = capacity();
    let of = |lab: &Lab| value_of(lab, "tls13-ecdsa", "courser", &Value::Tps.into());
    let measured = of(&lab).estimate().unwrap().value;
    // The three fastest blocks were held back by the generator, at a rate above that of the others.
    let cell =
        lab.cells.iter_mut().find(|cell| cell.case == "tls13-ecdsa" && cell.target == "courser").unwrap();
    for block in &mut cell.blocks[..3] {
        block.windows[0].inconclusive = Some("client-bound: core 0 was 97 % busy".to_owned());
        block.windows[0].window_us /= 2;
    }
    let CellValue::Value(found) = of(&lab) else { panic!("{:?}", of(&lab)) };
    assert_eq!((found.kind, found.blocks), (Kind::AtLeast, 6), "{found:?}");
    assert!(found.value > 1.2 * measured, "{found:?}: the slow half alone says {measured}");
    // With more of them there is no figure, and still a bound.
    let cell =
        lab.cells.iter_mut().find(|cell| cell.case == "tls13-ecdsa" && cell.target == "courser").unwrap();
    cell.blocks[3].windows[0].inconclusive = Some("client-bound: core 0 was 97 % busy".to_owned());
    let CellValue::Inconclusive { at_least: Some(bound), computed: Some(_), .. } = of(&lab) else { panic!() };
    assert_eq!(bound.kind, Kind::AtLeast);
    let text = labels::cell_text(Value::Tps, &of(&lab));
    assert!(text.starts_with("≥ ") && text.contains("(≈ "), "{text}");
    // Another experiment bounds nothing.
    let cell =
        lab.cells.iter_mut().find(|cell| cell.case == "tls13-ecdsa" && cell.target == "courser").unwrap();
    for block in &mut cell.blocks {
        block.windows[0].inconclusive =
            Some("client-bound: busy; wrong experiment: 3 ClientHellos".to_owned());
    }
    assert!(matches!(of(&lab), CellValue::Inconclusive { at_least: None, .. }), "{:?}", of(&lab));
}

#[test]
fn a_maximum_over_steps_that_the_generator_held_back_is_a_lower_bound() {
    let mut lab = capacity();
    let cell = lab.cells.iter_mut().find(|cell| cell.case == "stairs" && cell.target == "courser").unwrap();
    for window in cell.blocks[0].windows.iter_mut().skip(5) {
        window.inconclusive = Some("client-bound: core 0 was 97 % busy".to_owned());
    }
    let held = value_of(&lab, "stairs", "courser", &Value::MaxTps.into());
    let CellValue::Inconclusive { at_least: Some(bound), .. } = held else { panic!("{held:?}") };
    let whole = value_of(&capacity(), "stairs", "courser", &Value::MaxTps.into());
    assert!((bound.value / whole.estimate().unwrap().value - 1.0).abs() < 1e-9, "{bound:?}");
}

#[test]
fn one_round_tells_nothing() {
    let lab = capacity();
    let ranking = ranking_of(&lab, "stairs");
    assert!(ranking.pairs.iter().all(|pair| matches!(pair.outcome, Outcome::TooFew { rounds: 1 })));
}

#[test]
fn a_staircase_that_never_gave_way_says_at_least() {
    let mut lab = capacity();
    let told = value_of(&lab, "stairs", "courser", &Value::MaxTps.into());
    assert!(matches!(&told, CellValue::Value(found) if found.kind == Kind::Measured), "{told:?}");
    let cell = lab.cells.iter_mut().find(|cell| cell.case == "stairs" && cell.target == "courser").unwrap();
    cell.blocks[0].windows.truncate(5);
    let told = value_of(&lab, "stairs", "courser", &Value::MaxTps.into());
    assert!(matches!(&told, CellValue::Value(found) if found.kind == Kind::AtLeast), "{told:?}");
}

/// What it has begun ends well while it is waited for, and is no throughput.
#[test]
fn throughput_that_falls_past_its_maximum_is_seen() {
    let mut lab = capacity();
    let cell =
        lab.cells.iter_mut().find(|cell| (&*cell.case, &*cell.target) == ("stairs", "courser")).unwrap();
    for step in cell.blocks[0].windows.iter_mut().filter(|step| step.offered_tps > Some(6500.0)) {
        (step.succeeded, step.connections, step.failed) = (step.attempted, step.attempted, 0);
        let served = if step.offered_tps > Some(7000.0) { 4000 } else { 5000 };
        step.completed =
            Some(Completions { transactions: 3 * served, connections: 3 * served, ..Default::default() });
    }
    let CellValue::Value(most) = value_of(&lab, "stairs", "courser", &Value::MaxTps.into()) else { panic!() };
    assert!((5950.0..6050.0).contains(&most.value) && most.kind == Kind::Measured, "{most:?}");
    let page = lab_text::render(std::slice::from_ref(&lab), Style::default());
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(" served at most ") && page.contains("/s, and 4,000/s where 7,"), "{page}");
}

#[test]
fn processor_time_for_a_success_is_marked_where_most_failed() {
    let mut lab = capacity();
    let kind = |lab: &Lab| match value_of(lab, "tls13-rsa", "nginx", &Value::Cpu.into()) {
        CellValue::Value(cpu) => cpu.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&lab), Kind::Measured);
    let cell =
        lab.cells.iter_mut().find(|cell| (&*cell.case, &*cell.target) == ("tls13-rsa", "nginx")).unwrap();
    cell.blocks.iter_mut().for_each(|block| block.windows[0].failed = 40 * block.windows[0].succeeded);
    assert_eq!((kind(&lab), Kind::MostFailed.mark()), (Kind::MostFailed, "† "));
}

/// 6000, 196 and 0 a second are not one rate.
#[test]
fn rates_are_called_the_same_only_where_they_are() {
    let mut lab = capacity();
    let case = lab.cases.iter_mut().find(|case| case.id == "tls13-rsa").unwrap();
    case.measure = Measure::Rate;
    let offer = |lab: &mut Lab, target: &str, served: u64| {
        let cell =
            lab.cells.iter_mut().find(|cell| (&*cell.case, &*cell.target) == ("tls13-rsa", target)).unwrap();
        for (round, window) in (0..).zip(cell.blocks.iter_mut().flat_map(|block| &mut block.windows)) {
            window.user_us =
                window.user_us.map(|spent| spent + 1000 * (round * u64::from(target.as_bytes()[0]) % 7));
            window.completed =
                Some(Completions { transactions: served, connections: served, ..Default::default() });
        }
    };
    ["courser", "haproxy", "nginx"].iter().for_each(|target| offer(&mut lab, target, 2000));
    let order = |lab: &Lab| labels::order(lab, &ranking_of(lab, "tls13-rsa"));
    assert!(order(&lab).contains("per connection at 1000/s"), "{}", order(&lab));
    offer(&mut lab, "nginx", 100);
    assert!(
        order(&lab).contains("of rates that differ: courser 1000/s, haproxy 1000/s and nginx 50/s"),
        "{}",
        order(&lab)
    );
}

/// The rate of an open loop is what it was given: a generator that was late has brought it all the same.
#[test]
fn a_rate_that_was_given_is_counted_and_not_computed() {
    let lab = latency();
    let CellValue::Value(rate) = value_of(&lab, "wait-80 %", "courser", &Value::Tps.into()) else { panic!() };
    let served = |window: &WindowResult| window.served().transactions as f64 * 1e6 / window.window_us as f64;
    let counted = served(&lab.cell("wait-80 %", "courser").unwrap().blocks[0].windows[0]);
    assert_eq!(rate.kind, Kind::Measured);
    assert!((rate.value / counted - 1.0).abs() < 0.01, "{rate:?}");
    let mut lab = capacity();
    lab.cases.iter_mut().for_each(|case| case.measure = Measure::Rate);
    let order = labels::order(&lab, &ranking_of(&lab, "big"));
    let most = lab.cell("big", "courser").unwrap().blocks.iter().map(|block| served(&block.windows[0]));
    let most = most.fold(0.0, f64::max);
    let told = order.split("courser ").last().and_then(|rest| rest.split("/s").next()).unwrap();
    let told: f64 = told.parse().unwrap();
    assert!((0.99..1.01).contains(&(told / most)), "{told} of {most}: {order}");
}

#[test]
fn a_loss_limit_that_too_few_transactions_support_is_inconclusive() {
    let mut lab = capacity();
    for window in lab.cells.iter_mut().flat_map(|cell| &mut cell.blocks).flat_map(|block| &mut block.windows)
    {
        seconds_of(window, 0.05);
    }
    let told = value_of(&lab, "stairs", "courser", &Value::MaxTpsLoss.into());
    assert!(
        matches!(&told, CellValue::Inconclusive { reason, computed: None, .. } if reason.contains("30,000")),
        "{told:?}"
    );
}

#[test]
fn no_ranking_rests_on_the_way_without_a_terminator() {
    let mut lab = capacity();
    for cell in lab.cells.iter_mut().filter(|cell| cell.target == "nginx") {
        cell.verified.as_mut().unwrap().version = "clear".to_owned();
    }
    let ranking = ranking_of(&lab, "tls13-ecdsa");
    assert!(ranking.places.iter().all(|place| place.target != "nginx"), "{ranking:?}");
}

pub(crate) fn ranking_of(lab: &Lab, case: &str) -> Ranking {
    rankings(lab).into_iter().find(|ranking| ranking.case == case).unwrap()
}

/// A program under two names is not called different, and one that takes a tenth more in every block is.
#[test]
fn every_two_targets_are_compared_by_processor_time() {
    let mut lab = capacity();
    lab.cells
        .retain(|cell| cell.case == "tls13-ecdsa" && ["courser", "haproxy"].contains(&cell.target.as_str()));
    lab.cells[1].blocks = lab.cells[0].blocks.clone();
    let again = compared(&lab, Value::Cpu);
    let names: Vec<_> = again.iter().map(|one| (one.first.as_str(), one.second.as_str())).collect();
    assert_eq!(names, [("courser", "haproxy")]);
    assert_eq!((again[0].contrast.ratio, Precision::of(&again).different), (1.0, 0));
    for window in lab.cells[1].blocks.iter_mut().flat_map(|block| &mut block.windows) {
        window.user_us = window.user_us.map(|time| time * 2);
    }
    let dearer = compared(&lab, Value::Cpu);
    assert!(dearer[0].contrast.ratio > 1.05, "{dearer:?}");
    assert_eq!((Precision::of(&dearer).count, Precision::of(&dearer).different), (1, 1));
}
