//! Pools of servers in simulation: millions of connections, whose truth is known.

mod distribution;
mod health;
mod limit;
mod stick_table;
mod support;
