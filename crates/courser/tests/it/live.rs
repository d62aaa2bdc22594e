//! The status as it goes on: the stream of events and the page in a browser.

mod browser;
mod events;
mod page;

use courser_testkit::courser::Setup;

/// Adds a listener for operators.
fn watched(setup: Setup) -> Setup {
    setup.args(["--admin", "127.0.0.1:0"])
}
