//! When to renew, and when to try again: no clock, no network, no file. All times are Unix seconds.

use serde::{Deserialize, Serialize};

/// From the start of a certificate's validity to its end (RFC 5280, section 4.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// notBefore.
    pub begin: i64,
    /// notAfter.
    pub end: i64,
}

/// When the CA wants a certificate to be renewed (RFC 9773, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its start.
    pub begin: i64,
    /// Its end.
    pub end: i64,
}

/// What is known of a certificate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Of the one that there is.
    pub lifetime: Option<Lifetime>,
    /// What the CA has said of it.
    pub window: Option<Window>,
    /// Where in the window, drawn once for each certificate, so that not all of a fleet or of a CA are renewed at a time.
    pub draw: u16,
    /// An order is under way.
    pub has_order: bool,
    /// Not before that, after a failure or an order.
    pub not_before: Option<i64>,
}

/// When something is to be done, and why then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// From then on; a time that is over means now.
    pub at: i64,
    /// Why.
    pub why: Why,
}

/// Why a certificate is ordered then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// There is none.
    NoCertificate,
    /// An order was interrupted.
    OpenOrder,
    /// The CA says so.
    Window,
    /// A third of its lifetime is left.
    ThirdLeft,
    /// Half of its lifetime is left, which is ten days or less.
    HalfLeft,
    /// Before that the last try is too young, as after a failure.
    Pause,
}

impl Why {
    /// In words, behind the time.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoCertificate => "there is none yet",
            Self::OpenOrder => "its order goes on",
            Self::Window => "the CA asks for it then",
            Self::ThirdLeft => "a third of its lifetime is left then",
            Self::HalfLeft => "half of its lifetime is left then",
            Self::Pause => "after a pause since the last try",
        }
    }
}

/// Lifetimes up to this are short: who renews at a third of six days has two for all that can go wrong.
const SHORT: i64 = 10 * DAY;

const DAY: i64 = 86_400;

const HOUR: i64 = 3600;

/// When to order, or to go on with an order.
pub fn due(known: &Known) -> Due {
    let due = match known {
        Known { has_order: true, .. } => Due { at: i64::MIN, why: Why::OpenOrder },
        Known { lifetime: None, .. } => Due { at: i64::MIN, why: Why::NoCertificate },
        Known { lifetime: Some(lifetime), window, draw, .. } => renewal(*lifetime, *window, *draw),
    };
    match known.not_before {
        Some(at) if at > due.at => Due { at, why: Why::Pause },
        _ => due,
    }
}

fn renewal(lifetime: Lifetime, window: Option<Window>, draw: u16) -> Due {
    let Lifetime { begin, end } = lifetime;
    let length = end.saturating_sub(begin).max(0);
    if let Some(window) = window.filter(|window| window.end > window.begin) {
        // A window that comes too late is the CA's mistake, and would be our outage.
        return Due { at: pick(window, draw).min(end - length / 10), why: Why::Window };
    }
    let (left, why) = match length {
        ..=SHORT => (length / 2, Why::HalfLeft),
        _ => (length / 3, Why::ThirdLeft),
    };
    let latest = end - left;
    // Some days earlier for most, so that what was ordered together is not renewed together.
    Due { at: pick(Window { begin: latest - length / 24, end: latest }, draw), why }
}

/// Not before then, after a certificate was issued at `now`: whatever a CA says, or a clock that is wrong, may not make
/// orders without a pause.
pub fn rest(lifetime: Lifetime, now: i64) -> i64 {
    now.saturating_add((lifetime.end.saturating_sub(lifetime.begin) / 8).clamp(1, HOUR))
}

fn pick(window: Window, draw: u16) -> i64 {
    let length = i128::from(window.end) - i128::from(window.begin);
    let offset = length * i128::from(draw) / i128::from(u16::MAX);
    i64::try_from(i128::from(window.begin) + offset).unwrap_or(window.begin)
}

/// What a failure says of the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setback {
    /// Nothing has failed: another process takes over, and orders. This one goes on if nothing comes of it.
    HandedOver,
    /// The CA was not reached, or was not well: nothing has been counted.
    Unreachable,
    /// The CA has looked, and has refused: it counts such failures.
    Refused,
    /// As [`Self::Refused`], of a name that is proved by a TXT record and never was: the record is on its way into DNS.
    RecordAwaited,
    /// A limit of the CA is reached; it may have said until when.
    Limited {
        /// Not before then.
        until: Option<i64>,
    },
}

/// When to try again after a failure at `now`, which is the `failures`th in a row, at least the first.
pub fn try_again(setback: Setback, failures: u32, now: i64, draw: u16) -> i64 {
    let doubled = |first: i64, most: i64| {
        let pause = first.saturating_mul(1_i64.checked_shl(failures.saturating_sub(1)).unwrap_or(i64::MAX));
        pause.clamp(first, most)
    };
    let pause = match setback {
        Setback::HandedOver => 1,
        // It may be a router that restarts: seconds at first.
        Setback::Unreachable => doubled(4, HOUR),
        // Four in the first hour: somebody puts the record up, and DNS takes its time.
        Setback::RecordAwaited => doubled(300, DAY),
        // Let's Encrypt allows five failures an hour for a name and an account.
        Setback::Refused | Setback::Limited { until: None } => doubled(HOUR, DAY),
        Setback::Limited { until: Some(until) } => until.saturating_sub(now).clamp(60, 7 * DAY),
    };
    now.saturating_add(pause).saturating_add(pause / 8 * i64::from(draw) / i64::from(u16::MAX))
}

/// When to ask for the window again; the CA asks for `pause` seconds in between (RFC 9773, section 4.3: a minute to a day).
pub fn ask_again(now: i64, pause: u64) -> i64 {
    now.saturating_add(i64::try_from(pause).unwrap_or(DAY).clamp(60, DAY))
}

/// After a CA that has no such windows: six hours, as Let's Encrypt has it.
pub const ASK_AGAIN: u64 = 6 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate of so many days, from day 0.
    fn of(days: i64) -> Known {
        Known { lifetime: Some(Lifetime { begin: 0, end: days * DAY }), ..Known::default() }
    }

    #[test]
    fn without_a_certificate_it_is_now() {
        assert_eq!(due(&Known::default()), Due { at: i64::MIN, why: Why::NoCertificate });
    }

    #[test]
    fn an_order_goes_on_whatever_the_certificate() {
        assert_eq!(due(&Known { has_order: true, ..of(90) }).why, Why::OpenOrder);
    }

    #[test]
    fn a_third_is_left_or_of_ten_days_and_less_a_half() {
        for (days, at, why) in [
            (90, 60, Why::ThirdLeft),
            (45, 30, Why::ThirdLeft),
            (6, 3, Why::HalfLeft),
            (10, 5, Why::HalfLeft),
        ] {
            let last = due(&Known { draw: u16::MAX, ..of(days) });
            assert_eq!(last, Due { at: at * DAY, why }, "{days} days");
            let first = due(&of(days));
            assert!(first.at < last.at && first.at > (at - 4) * DAY, "{days} days: {first:?}");
        }
    }

    #[test]
    fn the_window_of_the_ca_goes_before_and_each_has_its_place_in_it() {
        let window = Window { begin: 10 * DAY, end: 12 * DAY };
        let at = |draw| due(&Known { window: Some(window), draw, ..of(90) });
        assert_eq!(at(0), Due { at: 10 * DAY, why: Why::Window });
        assert_eq!(at(u16::MAX).at, 12 * DAY);
        let middle = at(u16::MAX / 2).at;
        assert!((11 * DAY - 60..11 * DAY + 60).contains(&middle), "{middle}");
    }

    #[test]
    fn a_window_that_is_over_means_now_and_one_behind_the_end_does_not_count() {
        let past = Window { begin: -2 * DAY, end: -DAY };
        assert!(due(&Known { window: Some(past), ..of(90) }).at < 0);
        let late = Window { begin: 100 * DAY, end: 101 * DAY };
        assert_eq!(due(&Known { window: Some(late), ..of(90) }).at, 81 * DAY);
        let empty = Window { begin: DAY, end: DAY };
        assert_eq!(due(&Known { window: Some(empty), ..of(90) }).why, Why::ThirdLeft);
    }

    #[test]
    fn nothing_is_done_before_the_time_that_a_failure_has_set() {
        let after = |at| due(&Known { not_before: Some(at), has_order: true, ..of(90) });
        assert_eq!(after(5), Due { at: 5, why: Why::Pause });
        let long_over = due(&Known { not_before: Some(5), ..of(90) });
        assert_eq!(long_over.why, Why::ThirdLeft, "a renewal that is due later is due later");
    }

    #[test]
    fn who_is_refused_waits_for_hours_and_who_reaches_nobody_for_seconds() {
        let pauses = |setback| [1, 2, 3, 8, 200].map(|failures| try_again(setback, failures, 1000, 0) - 1000);
        assert_eq!(pauses(Setback::Refused), [HOUR, 2 * HOUR, 4 * HOUR, DAY, DAY]);
        assert_eq!(pauses(Setback::Limited { until: None }), [HOUR, 2 * HOUR, 4 * HOUR, DAY, DAY]);
        assert_eq!(pauses(Setback::Unreachable), [4, 8, 16, 512, HOUR]);
        assert_eq!(pauses(Setback::RecordAwaited), [300, 600, 1200, 38_400, DAY]);
    }

    #[test]
    fn a_limit_ends_when_the_ca_says() {
        let until = |until| try_again(Setback::Limited { until: Some(until) }, 9, 1000, 0);
        assert_eq!(until(1000 + 3 * HOUR), 1000 + 3 * HOUR);
        assert_eq!(until(0), 1060, "at least a minute");
        assert_eq!(until(i64::MAX), 1000 + 7 * DAY, "and not for good");
    }

    #[test]
    fn there_is_a_pause_behind_each_order() {
        assert_eq!(rest(Lifetime { begin: 0, end: 90 * DAY }, 1000), 1000 + HOUR);
        assert_eq!(rest(Lifetime { begin: 0, end: 40 }, 1000), 1005);
        assert_eq!(rest(Lifetime { begin: 40, end: 0 }, 1000), 1001);
    }

    #[test]
    fn tries_of_many_are_spread() {
        let spread = try_again(Setback::Refused, 1, 0, u16::MAX) - HOUR;
        assert_eq!(spread, HOUR / 8);
    }

    #[test]
    fn the_window_is_asked_for_within_a_minute_and_a_day() {
        assert_eq!([0, 3600, u64::MAX].map(|pause| ask_again(0, pause)), [60, 3600, DAY]);
    }
}
