//! From settings to pools of backends. May not connect to any.

use std::time::Duration;

use courser_config::{BackendAddress, HostConfig};
use courser_net::Address;
use courser_proxy::{Backend, Pool, Resolver, Threads};

use crate::exit::Failure;

/// How long the start waits for the addresses of names, all together: longer than a resolver takes that works.
const FIRST_ADDRESSES: Duration = Duration::from_secs(2);

/// Makes the pools of one generation of settings.
pub(crate) struct Pools<'a> {
    resolver: Resolver,
    workers: usize,
    threads: &'a Threads,
}

impl<'a> Pools<'a> {
    pub(crate) fn new(workers: usize, threads: &'a Threads) -> Self {
        Self { resolver: Resolver::default(), workers, threads }
    }

    /// The pool of a virtual host.
    pub(crate) fn of(&mut self, host: &HostConfig) -> Result<Pool, Failure> {
        let backends = host.backends.iter().map(|backend| self.backend(backend)).collect::<Result<_, _>>()?;
        Ok(Pool::new(backends, self.workers))
    }

    /// Waits until names have addresses, but not for long: what can be served is.
    pub(crate) fn wait_for_addresses(self) {
        self.resolver.wait_for_first_answers(FIRST_ADDRESSES);
    }

    fn backend(&mut self, backend: &BackendAddress) -> Result<Backend, Failure> {
        Ok(match backend {
            BackendAddress::Ip(address) => Backend::fixed(Address::Ip(*address)),
            BackendAddress::Unix(path) => Backend::fixed(Address::Unix(path.clone())),
            BackendAddress::Abstract(name) => Backend::fixed(Address::Abstract(name.clone())),
            BackendAddress::Name { host, port } => {
                self.resolver.backend(host, *port, self.threads).map_err(|error| {
                    Failure::runtime(format_args!("cannot start the look-up of backend {host}"), error)
                })?
            }
        })
    }
}
