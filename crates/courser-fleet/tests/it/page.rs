//! The page that names what is counted.

use courser_fleet::{Refusal, StateTransferStatus};

#[test]
fn the_page_of_the_fleet_names_all_that_a_status_says() {
    use StateTransferStatus::{Disabled, Done, NoPeer, Running, Waiting};
    let page = include_str!("../../../../docs/fleet.md");
    assert_names(page, Refusal::ALL.map(Refusal::name));
    assert_names(page, [Disabled, Waiting, Running, Done, NoPeer].map(StateTransferStatus::name));
}

fn assert_names(page: &str, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "the page does not say what {name:?} is");
    }
}
