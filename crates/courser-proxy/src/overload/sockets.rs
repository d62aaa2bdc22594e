//! Gate 0: the listening sockets of a worker, their queues and filters. Of a socket that workers share, the first worker owns the
//! filter.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::{AsyncListener, KnownSources, Network, SynFilter, SynShares};
use courser_overload::{Change, Control, Shares};
use courser_telemetry::Events;

use super::OverloadSettings;
use crate::settings::Listener;

/// The sockets that a filter may be put on.
#[derive(Default)]
pub(crate) struct Sockets {
    gates: RefCell<Vec<Gate>>,
    /// Which pairs of address and port are dropped; another one in each overload.
    salt: RandomState,
    /// The kernel takes no filter.
    is_refused: Cell<bool>,
}

struct Gate {
    socket: Rc<AsyncListener>,
    listener: Rc<RefCell<Arc<Listener>>>,
    /// It has a filter, or a short queue.
    is_set: bool,
    /// The limit of its queue in peace, in overload alone.
    backlog: Option<u32>,
    dropped: u32,
}

/// What the kernel says of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kernel {
    /// SYNs since it was asked last.
    pub(super) dropped: u32,
    pub(super) is_full: bool,
}

impl Sockets {
    /// The worker owns the filter of one more. The first act is to take off what somebody else may have left on it.
    pub(crate) fn add(&self, socket: &Rc<AsyncListener>, listener: &Rc<RefCell<Arc<Listener>>>) {
        self.remove(socket);
        if let (false, Ok(Some(queue))) = (socket.is_copy(), socket.accept_queue()) {
            // Where that fails, no filter could be put on.
            let _ = socket.set_syn_filter(None);
            let (socket, listener) = (Rc::clone(socket), Rc::clone(listener));
            let gate = Gate { socket, listener, is_set: false, backlog: None, dropped: queue.dropped };
            self.gates.borrow_mut().push(gate);
        }
    }

    /// It is somebody else's from now on.
    pub(crate) fn remove(&self, socket: &Rc<AsyncListener>) {
        let gone = |gate: &mut Gate| Rc::ptr_eq(&gate.socket, socket);
        self.gates.borrow_mut().extract_if(.., gone).for_each(|mut gate| gate.restore());
    }

    pub(super) fn restore(&self) {
        self.gates.borrow_mut().iter_mut().for_each(Gate::restore);
    }

    pub(super) fn look(&self) -> Kernel {
        let mut kernel = Kernel::default();
        for gate in &mut *self.gates.borrow_mut() {
            let Ok(Some(queue)) = gate.socket.accept_queue() else { continue };
            let before = std::mem::replace(&mut gate.dropped, queue.dropped);
            kernel.dropped = kernel.dropped.saturating_add(queue.dropped.wrapping_sub(before));
            kernel.is_full |= queue.length >= queue.limit;
        }
        kernel
    }

    /// Whether the kernel drops what is too much for a listener. Where a PROXY header says who the client is, its SYN says it
    /// of the balancer.
    pub(super) fn is_filtered(&self, listener: &Arc<Listener>) -> bool {
        let is_its = |gate: &Gate| Arc::ptr_eq(&gate.listener.borrow(), listener);
        listener.accept_proxy.is_none() && !self.is_refused.get() && self.gates.borrow().iter().any(is_its)
    }

    /// A number from 0 to 1 that a pair of address and port always draws.
    pub(super) fn draw(&self, source: SocketAddr) -> f64 {
        (self.salt.hash_one(source) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn apply(
        &self,
        control: &Control,
        change: Change,
        settings: &OverloadSettings,
        events: &Events,
    ) {
        if change == Change::Ended {
            self.restore();
            return;
        }
        let filters = Filters::new(control.shares(), settings, self.salt.hash_one(0_u8));
        for gate in &mut *self.gates.borrow_mut() {
            gate.shorten(control.backlog());
            let is_for_balancers = gate.listener.borrow().accept_proxy.is_some();
            let set = if is_for_balancers { Ok(()) } else { filters.set(&gate.socket) };
            if let Err(error) = set {
                self.is_refused.set(true);
                events.warn("filter", format_args!("the kernel takes no filter of SYNs: {error}"));
            }
        }
    }
}

impl Gate {
    fn shorten(&mut self, backlog: u32) {
        self.is_set = true;
        if self.backlog.is_none() && !self.socket.is_foreign() {
            self.backlog = self.socket.accept_queue().ok().flatten().map(|queue| queue.limit);
        }
        if let Some(before) = self.backlog {
            // One that cannot be set is as long as before: the line bounds the rest.
            let _ = self.socket.set_backlog(backlog.min(before));
        }
    }

    fn restore(&mut self) {
        if std::mem::take(&mut self.is_set) {
            let _ = self.socket.set_syn_filter(None);
        }
        if let Some(backlog) = self.backlog.take() {
            let _ = self.socket.set_backlog(backlog);
        }
    }
}

/// The filter of all sockets; a smaller one for kernels that take none of the full size.
struct Filters {
    full: Option<SynFilter>,
    small: Option<SynFilter>,
}

impl Filters {
    fn new(shares: &Shares, settings: &OverloadSettings, salt: u64) -> Self {
        if shares.all() {
            return Self { full: None, small: None };
        }
        let exempt = settings.exempt.iter().map(|&network| (network, 0.0));
        let limited = shares.networks.iter();
        let limited = limited.map(|&((address, bits), share)| (Network::new(address, bits), 1.0 - share));
        let networks: Vec<_> = exempt.chain(limited).collect();
        let known: KnownSources = settings.crowd.visitors.known();
        let [high, low] = [salt >> 32, salt & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0));
        let small =
            SynShares { salt: high ^ low, networks: &networks, known: None, others: 1.0 - shares.others };
        let full = SynShares { known: Some((&known, 1.0 - shares.known)), ..small };
        Self { full: Some(SynFilter::drop_shares(&full)), small: Some(SynFilter::drop_shares(&small)) }
    }

    fn set(&self, socket: &AsyncListener) -> io::Result<()> {
        match socket.set_syn_filter(self.full.as_ref()) {
            Err(error) if error.raw_os_error() == Some(ENOMEM) => socket.set_syn_filter(self.small.as_ref()),
            result => result,
        }
    }
}

const ENOMEM: i32 = 12;
