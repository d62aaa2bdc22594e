//! An origin without a thread of its own: a generator's event loop serves it while a run lasts, so that one core does the
//! work of both, without switching between two programs.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::{Address, AsyncListener, ListenSocket};

use super::state::State;
use super::worker::accept;
use super::{Counters, Mode, OriginError, Proxy, Settings};

/// Listening sockets that are served by the first thread of every run whose plan has them. Between runs connections wait
/// in the queue; those that are open when a run ends are closed.
#[derive(Clone, Debug)]
pub struct OriginSockets(Arc<Vec<ListenSocket>>);

impl OriginSockets {
    /// Listens on all `addresses`; port 0 takes a free port.
    ///
    /// # Errors
    /// [`OriginError::Listen`].
    pub fn open(addresses: &[SocketAddr]) -> Result<Self, OriginError> {
        let backlog = Settings::default().backlog;
        let open = |address: &SocketAddr| {
            let address = Address::Ip(*address);
            ListenSocket::open(&address, true, backlog, 1)
                .map_err(|error| OriginError::Listen { address, error })
        };
        let sockets = addresses.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Self(Arc::new(sockets.into_iter().flatten().collect())))
    }

    /// Where it listens, with the real ports, in the order they were given.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let ip = |socket: &ListenSocket| match socket.address() {
            Address::Ip(address) => Some(*address),
            _ => None,
        };
        self.0.iter().filter_map(ip).collect()
    }

    /// Accepts and serves connections on the current thread's runtime, until that ends.
    pub(crate) fn serve(&self) -> io::Result<()> {
        let state = Rc::new(State::new(Proxy::Accepted, Mode::Http, Arc::new(Counters::default())));
        for (socket, page) in self.0.iter().zip(1..) {
            tokio::task::spawn_local(accept(Rc::clone(&state), AsyncListener::new(socket.share()?)?, page));
        }
        Ok(())
    }
}
