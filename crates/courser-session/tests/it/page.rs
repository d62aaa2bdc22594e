//! What people read about misses, held to the names in logs.

use courser_session::Miss;

#[test]
fn the_page_names_every_reason() {
    let page = include_str!("../../../../docs/life-of-a-connection.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let offered = Miss::ALL.into_iter().filter(|miss| *miss != Miss::NotOffered);
    let names: Vec<_> = offered.map(|miss| format!("`{}`", miss.name())).collect();
    let list = format!("`miss` is one of {};", names.join(", "));
    assert!(page.contains(&list), "docs/life-of-a-connection.md should say: {list}");
}
