//! A thread of the generator: one single-threaded runtime, its share of the arrivals, its own statistics.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::task::Poll;
use std::time::Duration;

use courser_net::{Timer, cpu};
use courser_record::Second;
use courser_stats::Histogram;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::{spawn_local, yield_now};

use crate::connection::run_attempt;
use crate::plan::{Model, Offered, Plan, Workload};
use crate::schedule::Schedule;
use crate::tally::ThreadStats;
use crate::worker::{Control, Worker};

/// Tasks that the runtime of a schedule runs before it asks the kernel for events again: an arrival that is due waits for no
/// more. In a closed loop nothing is due, and each time that it asks is a system call: there it is tokio's own, 61.
const EVENT_INTERVAL: u32 = 4;

/// What a thread has to do.
pub(crate) struct Task {
    pub(crate) plan: Arc<Plan>,
    /// Counted from 0.
    pub(crate) index: usize,
    /// When the run starts, on the engine's clock.
    pub(crate) start: Duration,
    pub(crate) control: Arc<Control>,
    /// Where each second's counts go.
    pub(crate) seconds: Sender<Second<Histogram>>,
}

impl Task {
    /// Runs to the end of the drain. Fails only if the thread cannot be set up.
    pub(crate) fn run(self) -> io::Result<ThreadStats> {
        if let Some(Some(cpu)) = self.plan.threads.get(self.index) {
            cpu::pin(*cpu)?;
        }
        let runtime = runtime(&self.plan.model)?;
        let worker = Rc::new(Worker::new(&self.plan, self.index, self.start, &self.control));
        runtime.block_on(drive(Rc::clone(&worker), self.seconds.clone()))?;
        // A connection that is still open accounts for itself as it is dropped.
        drop(runtime);
        let mut stats = worker.stats.replace(ThreadStats::new(Vec::new()));
        if let Some(last) = stats.last_second() {
            let _ = self.seconds.send(last);
        }
        Ok(stats)
    }
}

fn runtime(model: &Model) -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_io().enable_time();
    if !matches!(model, Model::Closed(_)) {
        builder.event_interval(EVENT_INTERVAL);
    }
    builder.build_local(LocalOptions::default())
}

/// The thread's life: arrivals, then the drain.
async fn drive(worker: Rc<Worker>, seconds: Sender<Second<Histogram>>) -> io::Result<()> {
    let mut timer = Timer::new()?;
    if let Some(origin) = worker.origin() {
        origin.serve()?;
    }
    spawn_local(report_seconds(Rc::clone(&worker), seconds));
    spawn_local(beat(Rc::clone(&worker)));
    match worker.plan.model.clone() {
        Model::Sessions(offered) => arrivals(&worker, &mut timer, &offered, session).await?,
        Model::Connections(offered) => arrivals(&worker, &mut timer, &offered, connection).await?,
        Model::Closed(clients) => {
            // Threads are up before the run starts, by as long as it is to wait for others.
            timer.until(worker.start).await?;
            closed(&worker, clients);
        }
    }
    wait_for(&worker, &mut timer, worker.plan.steady_end()).await?;
    worker.over.set(true);
    drain(&worker).await;
    Ok(())
}

/// Calls `arrive` with each intended start in our share, at that time or as soon after it as can be. What has not
/// arrived by the end of the drain is given up: a rate far beyond what can be made has an end, too. What is due at the
/// very end of the steady phase is of no window.
async fn arrivals<F: Future<Output = ()> + 'static>(
    worker: &Rc<Worker>,
    timer: &mut Timer,
    offered: &Offered,
    arrive: impl Fn(Rc<Worker>, Duration) -> F,
) -> io::Result<()> {
    let plan = &worker.plan;
    let share = plan.share.part(worker.clients.get(), plan.threads.len() as u64);
    let (end, last_call) = (plan.steady_end(), plan.steady_end() + plan.phases.drain);
    let schedule = Schedule::new(plan.pieces(), offered.arrivals, share);
    for intended in schedule.take_while(|intended| *intended < end) {
        if worker.now() < intended {
            timer.until(worker.start + intended).await?;
        } else {
            yield_now().await; // behind: those that have arrived get their turn all the same
        }
        if worker.control.stop.load(Ordering::Relaxed) || worker.now() > last_call {
            break;
        }
        if worker.is_full() {
            worker.record_rejection(intended);
        } else {
            begin(Box::pin(arrive(Rc::clone(worker), intended))).await;
        }
    }
    Ok(())
}

/// Starts a connection here and now, up to its first wait: as a task it would begin behind all those that are ready, and
/// be late by as much as a slow server has answered at once.
async fn begin(mut arrival: Pin<Box<impl Future<Output = ()> + 'static>>) {
    if poll_fn(|cx| Poll::Ready(arrival.as_mut().poll(cx))).await.is_pending() {
        spawn_local(arrival);
    }
}

/// A client that comes, makes its connections one after the other, and is gone.
async fn session(worker: Rc<Worker>, intended: Duration) {
    let mut client = worker.client();
    worker.record_session(intended);
    run_attempt(&worker, &mut client, Some(intended)).await;
    while !worker.is_spent(&client) && !worker.is_over() {
        run_attempt(&worker, &mut client, None).await;
    }
}

/// A connection of a client that has rested longest, or of a new one.
async fn connection(worker: Rc<Worker>, intended: Duration) {
    let rested = worker.resting.borrow_mut().pop_front();
    let mut client = rested.unwrap_or_else(|| {
        worker.record_session(intended);
        worker.client()
    });
    run_attempt(&worker, &mut client, Some(intended)).await;
    if !worker.is_spent(&client) {
        worker.resting.borrow_mut().push_back(client);
    }
}

/// Clients that never rest.
fn closed(worker: &Rc<Worker>, clients: u64) {
    let plan = &worker.plan;
    let share = plan.share.part(worker.clients.get(), plan.threads.len() as u64);
    let ours = share.of_total(clients);
    let over = if let Workload::Hold { over, .. } = plan.exchange { over } else { Duration::ZERO };
    for number in 0..ours {
        let begins = over.mul_f64(number as f64 / ours as f64);
        spawn_local(restless(Rc::clone(worker), begins, plan.reuse.fewer_at_first(number, ours)));
    }
}

/// A client that begins so long after the start of the run, and never rests. Its first session makes so many connections fewer.
async fn restless(worker: Rc<Worker>, begins: Duration, mut fewer: u32) {
    if !begins.is_zero() {
        tokio::time::sleep(begins.saturating_sub(worker.now())).await;
    }
    while !worker.is_over() && !worker.control.stop.load(Ordering::Relaxed) {
        let mut client = worker.client();
        client.used = std::mem::take(&mut fewer);
        worker.record_session(worker.now());
        while !worker.is_spent(&client) && !worker.is_over() {
            let failures = worker.failures();
            run_attempt(&worker, &mut client, None).await;
            if worker.failures() > failures {
                // A server that refuses at once would be asked as fast as the machine can.
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
}

/// How long a client of a closed loop rests after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);

async fn wait_for(worker: &Worker, timer: &mut Timer, end: Duration) -> io::Result<()> {
    const LOOK: Duration = Duration::from_millis(100);
    while worker.now() < end && !worker.control.stop.load(Ordering::Relaxed) {
        timer.until(worker.start + end.min(worker.now() + LOOK)).await?;
    }
    Ok(())
}

/// Gives what is open some time to end. Connections that are held open by intention are not waited for.
async fn drain(worker: &Worker) {
    if matches!(worker.plan.exchange, Workload::Hold { .. }) {
        return;
    }
    let all_gone = async {
        while worker.stats.borrow().in_flight > 0 {
            worker.idle.notified().await;
        }
    };
    let _ = tokio::time::timeout(worker.plan.phases.drain, all_gone).await;
}

/// Sleeps, and notes how late it wakes: by then the thread either was busy, which its processor time tells, or did not
/// get its processor.
async fn beat(worker: Rc<Worker>) {
    const PERIOD: Duration = Duration::from_millis(10);
    loop {
        let due = worker.now() + PERIOD;
        tokio::time::sleep(PERIOD).await;
        worker.beat(due);
    }
}

/// Hands the counts over at the end of each second.
async fn report_seconds(worker: Rc<Worker>, seconds: Sender<Second<Histogram>>) {
    const SECOND: Duration = Duration::from_secs(1);
    loop {
        let second = worker.stats.borrow().second.second;
        let end = SECOND * u32::try_from(second + 1).unwrap_or(u32::MAX);
        tokio::time::sleep(end.saturating_sub(worker.now())).await;
        if seconds.send(worker.stats.borrow_mut().next_second()).is_err() {
            return; // the receiver is gone
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::failure::Class;
    use courser_net::timer;

    use crate::plan::{LoadTarget, Phases, Reuse, Sockets};
    use crate::schedule::{Arrivals, Piece, Share};
    use courser_record::CloseMode;

    /// Two arrivals, 25 and 75 ms after the start; no server listens.
    fn two_arrivals() -> Plan {
        let second = Duration::from_secs(1);
        let steps = vec![Piece::even(20.0, second / 10)];
        Plan {
            target: LoadTarget { addresses: vec![([127, 0, 0, 1], 1).into()], security: None },
            model: Model::Connections(Offered { steps, arrivals: Arrivals::Even }),
            reuse: Reuse::Times(1),
            exchange: Workload::Handshake,
            close: CloseMode::Fin,
            sockets: Sockets::default(),
            phases: Phases {
                warm_up: Duration::ZERO,
                ramp: Duration::ZERO,
                steady: second,
                drain: 60 * second,
                connect_timeout: 60 * second,
                timeout: 60 * second,
                pause: Duration::ZERO,
                in_flight: 10,
            },
            threads: vec![None],
            share: Share::WHOLE,
            seed: 1,
            origin: None,
        }
    }

    /// Statistics of a thread that begins so long after the start of its run.
    fn begun_late(late: Duration) -> ThreadStats {
        let (plan, index, control) = (Arc::new(two_arrivals()), 0, Arc::default());
        let task = Task { plan, index, start: timer::now() - late, control, seconds: channel().0 };
        task.run().unwrap()
    }

    #[test]
    fn an_arrival_that_is_late_is_made_even_if_it_is_the_last_one() {
        let stats = begun_late(Duration::from_millis(500));
        assert_eq!(stats.tallies[0].connections, 2);
        assert_eq!(stats.tallies[0].failures.get(&Class::Refused), 2, "{:?}", stats.tallies[0].failures);
    }

    #[test]
    fn no_client_arrives_when_the_drain_is_over() {
        let stats = begun_late(Duration::from_secs(62));
        assert_eq!((stats.tallies[0].connections, stats.failures), (0, 0));
    }
}
