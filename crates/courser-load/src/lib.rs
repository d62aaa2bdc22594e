//! The load engine: clients that open connections on a schedule fixed in advance, and account for each; and the
//! origin, a backend with objects of any size. It knows no file format and prints nothing.

pub mod http;
