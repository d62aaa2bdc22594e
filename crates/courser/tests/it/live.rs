//! The status as it goes on: the stream of events, the page in a browser and `courser top`, which say the same.

mod browser;
mod events;
mod names;
mod page;
mod top;

use courser_testkit::courser::Setup;

/// Adds a listener for operators.
fn watched(setup: Setup) -> Setup {
    setup.args(["--admin", "127.0.0.1:0"])
}
