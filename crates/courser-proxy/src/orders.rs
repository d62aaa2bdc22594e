//! What the operator has said of servers. It outlives them: a server that its name gets anew, and a pool that is made anew,
//! take over what was said of their names.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use courser_balance::{Drain, Server, Sharer};

use crate::clock::since_start;

/// What the operator has said of the servers of all pools.
#[derive(Debug, Default)]
pub struct Orders(Mutex<HashMap<(String, String), Order>>);

/// What the operator has said of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Gets no new connections.
    pub is_drained: bool,
    /// Of its weight.
    pub percent: u16,
}

impl Default for Order {
    fn default() -> Self {
        Self { is_drained: false, percent: 100 }
    }
}

impl Orders {
    /// Changes what is said of a server of a pool, and tells the server.
    pub fn change<T>(&self, pool: &str, server: &Server<T>, change: impl FnOnce(&mut Order)) {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let order = orders.entry((pool.to_owned(), server.name.clone())).or_default();
        change(order);
        tell(server, *order);
    }

    /// All that was said: of which pool, of which server, and what.
    pub fn list(&self) -> Vec<(String, String, Order)> {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.iter().map(|((pool, server), order)| (pool.clone(), server.clone(), *order)).collect()
    }

    /// Takes over what was said to another process, before there are servers.
    pub fn take_over(&self, orders: impl IntoIterator<Item = (String, String, Order)>) {
        let orders = orders.into_iter().map(|(pool, server, order)| ((pool, server), order));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(orders);
    }

    /// Tells a server that is new what is said of its name.
    pub(crate) fn welcome<T>(&self, pool: &str, server: &Server<T>) {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(order) = orders.get(&(pool.to_owned(), server.name.clone())) {
            tell(server, *order);
        }
    }
}

fn tell<T>(server: &Server<T>, order: Order) {
    server.set_drained(Drain::Operator, order.is_drained, since_start());
    server.set_percent(Sharer::Operator, order.percent);
}
