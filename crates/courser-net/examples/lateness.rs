//! How late the timer wakes: `lateness [TICKS_PER_SECOND [SECONDS [CPU]]]`, on an otherwise idle core if one is named.
//! Next to it the runtime's own timer, for comparison.

use std::time::Duration;

use courser_net::{Timer, cpu};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a whole number"));
    let (rate, seconds) = (arguments.next().unwrap_or(1000), arguments.next().unwrap_or(5));
    if let Some(cpu) = arguments.next() {
        cpu::pin(cpu.try_into().expect("a small number")).expect("a CPU of this machine");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (period, ticks) = (Duration::from_secs(1) / rate, rate * seconds);
    print("timerfd", runtime.block_on(ours(period, ticks)));
    print("tokio", runtime.block_on(tokios(period, ticks)));
}

async fn ours(period: Duration, ticks: u32) -> Vec<Duration> {
    let mut timer = Timer::new().expect("a descriptor");
    let (start, mut late) = (now() + period, Vec::new());
    for tick in 0..ticks {
        let moment = start + period * tick;
        if now() < moment {
            timer.until(moment).await.expect("the runtime runs");
        }
        late.push(now() - moment);
    }
    late
}

async fn tokios(period: Duration, ticks: u32) -> Vec<Duration> {
    let (start, mut late) = (tokio::time::Instant::now() + period, Vec::new());
    for tick in 0..ticks {
        let moment = start + period * tick;
        tokio::time::sleep_until(moment).await;
        late.push(moment.elapsed());
    }
    late
}

fn print(name: &str, mut late: Vec<Duration>) {
    late.sort_unstable();
    let at = |permille: usize| late[(late.len() - 1) * permille / 1000];
    let (median, p99, p999, most) = (at(500), at(990), at(999), at(1000));
    println!(
        "{name:8} {} ticks, late by p50 {median:?}, p99 {p99:?}, p99.9 {p999:?}, at most {most:?}",
        late.len()
    );
}

fn now() -> Duration {
    clock_gettime(ClockId::Monotonic).try_into().expect("the clock is not negative")
}
