//! Every kind of URL, what is wrong with others, and that no password is shown.

use proptest::prelude::*;

use super::*;

fn parse(url: &str) -> StoreUrl {
    StoreUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn says(url: &str, what: &str) {
    let error = StoreUrl::parse(url).expect_err(url).to_string();
    assert!(error.contains(what), "{url}: {error}");
}

#[test]
fn every_kind_is_shown_in_full_but_for_the_password() {
    for (url, shown) in [
        ("redis://host", "redis://host:6379"),
        ("redis://host/", "redis://host:6379"),
        ("REDIS://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
        ("rediss://user:secret@store.internal:6380/0", "rediss://user@store.internal:6380"),
        ("valkeys://:secret@[2001:db8::1]", "valkeys://[2001:db8::1]:6379"),
        ("redis://[::1]:7/1", "redis://[::1]:7/1"),
        ("redis://a%40b:%2F%25@host", "redis://a%40b@host:6379"),
        ("redis-sentinel://a,b:7,[::1]/main/2", "redis-sentinel://a:26379,b:7,[::1]:26379/main/2"),
        ("rediss-cluster://u:p@a,b:7", "rediss-cluster://u@a:6379,b:7"),
        ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ("unix:///run/redis.sock?db=5", "unix:///run/redis.sock?db=5"),
    ] {
        assert_eq!(parse(url).to_string(), shown);
    }
}

#[test]
fn user_and_password_are_decoded() {
    let url = parse("redis://a%40b:%2F%25%C3%A4@host");
    assert_eq!(url.user(), Some("a@b"));
    assert_eq!(url.password().map(|password| password.as_str()), Some("/%ä"));
}

#[test]
fn an_error_says_which_part_is_wrong_and_what_is_right() {
    says("", "write redis://");
    says("host:6379", "write redis://");
    says("redis:/host", "redis:/ is no scheme of a session store; did you mean redis://?");
    says("redis:host", "did you mean redis://?");
    says("reddis://host", "did you mean redis://?");
    says("redis-cluter://host", "did you mean redis-cluster://?");
    says("http://host", "http:// is no scheme");
    says("redis://", "no host");
    says("redis://:6379", "no host");
    says("redis://user:password@", "no host");
    says("redis://ho st", "\"ho st\" is no host");
    says("redis://[::1", "is no host");
    says("redis://[::1]7", "is no port");
    says("redis://[nonsense]:7", "\"nonsense\" is no host");
    says("redis://::1", "[::1]");
    says("redis://host:99999", "99999 is no port");
    says("redis://host:0", "0 is no port");
    says("redis://a,b", "redis-cluster://");
    says("redis://host/x", "\"x\" is no database");
    says("redis://host/65536", "\"65536\" is no database");
    says("redis://host/0/1", "\"1\" is too much");
    says("redis://host?db=1", "%3F");
    says("redis://us%zer:p@host", "%25");
    says("redis-sentinel://a,b", "master is missing");
    says("redis-cluster://a,b/1", "database 0 alone");
    says("redis-cluster://a,,b", "no host");
    says("redis+unix://run/redis.sock", "no path");
    says("redis+unix:///run/redis.sock?database=1", "?");
}

#[test]
fn no_error_shows_a_password() {
    for url in [
        "redis://user:hunter2",
        "redis://:hunter2",
        "redis://user:hunter2@a@host",
        "redis://user:hunter2/x@host",
        "redis://user:hunter2#@host",
        "redis://user:hunter2%@host",
        "redis://user:hunter2@host:x",
        "redis://user:hunter2@host/x",
        "redis:/user:hunter2@host",
        "user:hunter2@host",
        "hunter2@host",
        "redi://user:hunter2@host",
        "redis+unix://user:hunter2@run",
    ] {
        let error = StoreUrl::parse(url).expect_err(url);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error:?}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_what_is_shown_is_read_alike(url in "(redis|rediss-sentinel|valkey-cluster|unix)://\\PC{0,40}") {
        if let Ok(read) = StoreUrl::parse(&url) {
            let again = StoreUrl { password: read.password.clone(), ..parse(&read.to_string()) };
            prop_assert_eq!(again, read);
        }
    }

    #[test]
    fn a_password_is_never_shown(password in "[a-zA-Z0-9]{8,20}") {
        let url = parse(&format!("rediss://user:{password}@host"));
        let shown = format!("{url} {url:?}");
        prop_assert!(!shown.contains(&password));
        prop_assert_eq!(url.password().map(|password| password.as_str()), Some(password.as_str()));
    }
}
