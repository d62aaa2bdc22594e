//! A server that is checked: what its checks change, and the lines that say so.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use courser_balance::{Drain, Server, Sharer};
use courser_telemetry::event::{Level, log};

use super::{LastCheck, Watched};
use crate::agent::Report;
use crate::probe::Endpoint;

pub(super) struct CheckedServer<T> {
    pub(super) watched: Rc<Watched<T>>,
    pub(super) server: Arc<Server<T>>,
    /// Which checks say that it is down.
    down: RefCell<Vec<bool>>,
    /// When it went down.
    down_since: Cell<Duration>,
    agent_is_silent: Cell<bool>,
}

impl<T> CheckedServer<T> {
    pub(super) fn new(watched: Rc<Watched<T>>, server: Arc<Server<T>>) -> Self {
        let down = RefCell::new(vec![false; watched.pool.checks.len()]);
        Self { watched, server, down, down_since: Cell::default(), agent_is_silent: Cell::default() }
    }

    pub(super) fn endpoint(&self) -> Endpoint<'_> {
        (self.watched.endpoint)(&self.server.target)
    }

    /// Takes what a check says after so many results in a row.
    pub(super) fn judge(&self, check: usize, (is_up, results): (bool, u32), last: &LastCheck) {
        let in_a_row = if results > 1 { format!(", {results} times in a row") } else { String::new() };
        let taken = last.taken.as_secs_f64() * 1000.0;
        self.set(check, is_up, &format!("{} check: {} after {taken:.1} ms{in_a_row}", last.kind, last.seen));
    }

    /// Does what the agent says, and logs what is new in it.
    pub(super) fn obey(&self, report: &Report) {
        let (server, now) = (&self.server, (self.watched.now)());
        let is_new = [
            report.is_drained.is_some_and(|drained| server.set_drained(Drain::Agent, drained, now)),
            report.percent.is_some_and(|percent| server.set_percent(Sharer::Agent, percent)),
            report.limit.is_some_and(|limit| server.set_limit(limit)),
            self.agent_is_silent.replace(false),
        ];
        if is_new.contains(&true) {
            self.log(Level::Info, &format!("its agent says `{}`", report.line));
        }
        let agent = self.watched.pool.checks.iter().position(|check| check.probe.kind.name() == "agent");
        if let (Some(is_up), Some(agent)) = (report.is_up, agent) {
            self.set(agent, is_up, &format!("its agent says `{}`", report.line));
        }
        self.look_at_pool();
    }

    pub(super) fn agent_is_silent(&self, last: &LastCheck) {
        if !self.agent_is_silent.replace(true) {
            self.log(Level::Warning, &format!("its agent: {}; what it said last holds", last.seen));
        }
    }

    fn set(&self, check: usize, is_up: bool, why: &str) {
        self.down.borrow_mut()[check] = !is_up;
        let (is_down, now) = (self.down.borrow().contains(&true), (self.watched.now)());
        if !self.server.set_down(is_down, now) {
            return;
        }
        if is_down {
            self.down_since.set(now);
            self.log(Level::Warning, &format!("down: {why}; {}", self.left()));
        } else {
            let seconds = now.saturating_sub(self.down_since.get()).as_secs();
            self.log(Level::Info, &format!("up after {seconds} s: {why}; {}", self.left()));
        }
        self.look_at_pool();
    }

    /// Logs when the pool's last good server has gone, or one is back.
    fn look_at_pool(&self) {
        let (pool, now) = ((*self.watched.pool.pool).as_ref(), (self.watched.now)());
        let name = &self.watched.pool.name;
        let is_desperate = !pool.servers().iter().any(|server| server.availability(now).is_good());
        match (pool.set_desperate(is_desperate), is_desperate) {
            (true, true) => log(
                Level::Error,
                format_args!("pool {name}: NO SERVER IS GOOD: all that are not drained get connections"),
            ),
            (true, false) => log(Level::Info, format_args!("pool {name}: a server is good again")),
            (false, _) => {}
        }
    }

    fn left(&self) -> String {
        let (servers, now) = ((*self.watched.pool.pool).as_ref().servers(), (self.watched.now)());
        let good = servers.iter().filter(|server| server.availability(now).is_good()).count();
        format!("{good} of {} left", servers.len())
    }

    fn log(&self, level: Level, what: &str) {
        log(level, format_args!("pool {}: server {}: {what}", self.watched.pool.name, self.server.name));
    }
}
