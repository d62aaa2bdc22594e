//! The pages that name what is counted.

use courser_session::ResumptionFailure;

#[test]
fn the_page_names_every_reason_that_a_line_can_have() {
    let page = include_str!("../../../../docs/life-of-a-connection.md");
    let misses = ResumptionFailure::ALL.into_iter().filter(|miss| *miss != ResumptionFailure::NotOffered);
    assert_names(page, misses.map(ResumptionFailure::name));
}

fn assert_names(page: &str, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "the page does not say what {name:?} is");
    }
}
