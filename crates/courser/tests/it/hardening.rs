//! What the running program has given up, as the kernel tells it: core files, rights, users, files, system calls.

mod confinement;
mod memory;
mod user;
