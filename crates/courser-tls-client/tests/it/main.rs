//! Both ends of TLS against each other, the client against OpenSSL's servers and against faulty ones.

mod client;
mod client_certificate;
mod faulty_server;
mod flight;
#[cfg(feature = "openssl")]
mod openssl;
mod s_server;
mod server;
mod shared;
