//! An order whose answer nobody has read, as after a crash at that moment: the CA has it, and lists it with the account
//! (RFC 8555, section 7.1.2.1). A CA without such a list, Let's Encrypt for one, gives the same order when it is asked again.

use instant_acme::Error;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::Ca;
use crate::http::Answer;
use crate::names::NameSet;
use crate::trouble::Trouble;

/// What of an account the library does not show.
#[derive(Deserialize)]
struct Account {
    orders: Option<String>,
}

/// A page of an account's orders.
#[derive(Deserialize)]
struct Orders {
    orders: Vec<String>,
}

/// What of an order the library does not show.
#[derive(Deserialize)]
struct Order {
    status: String,
    identifiers: Vec<Identifier>,
    profile: Option<String>,
}

#[derive(Deserialize)]
struct Identifier {
    value: String,
}

/// Most pages and orders that are looked at: a CA may list what it has issued in all years, or empty pages without an end.
const MOST: usize = 30;

/// URL of an order for these names that is still to be proved or finalized. No CA that answers otherwise than expected keeps
/// anybody from ordering.
pub(crate) async fn order(ca: &Ca, set: &NameSet, profile: Option<&str>) -> Result<Option<String>, Trouble> {
    let Some((Account { orders: Some(list) }, _)) = read::<Account>(ca, ca.account.id()).await? else {
        return Ok(None);
    };
    let (mut list, mut looked_at) = (Some(list), 0);
    while let Some(page) = list.take().filter(|_| looked_at < MOST) {
        looked_at += 1;
        let Some((Orders { orders }, answer)) = read::<Orders>(ca, &page).await? else { return Ok(None) };
        for url in orders {
            if looked_at == MOST {
                return Ok(None);
            }
            looked_at += 1;
            if read::<Order>(ca, &url).await?.is_some_and(|(order, _)| order.is_of(set, profile)) {
                return Ok(Some(url));
            }
        }
        list = answer.next;
    }
    Ok(None)
}

impl Order {
    /// Whether it can be gone on with. What was finalized has a key that is lost.
    fn is_of(&self, set: &NameSet, profile: Option<&str>) -> bool {
        let (mut ours, mut theirs) =
            (set.names(), self.identifiers.iter().map(|one| one.value.to_lowercase()).collect::<Vec<_>>());
        ours.sort_unstable();
        theirs.sort_unstable();
        matches!(&*self.status, "pending" | "ready")
            && ours == theirs
            && (profile.is_none() || profile == self.profile.as_deref())
    }
}

/// What a signed request for `url` answers. The library signs one for any URL and reads an order from the answer, which it need
/// not be: the answer itself was kept.
async fn read<T: DeserializeOwned>(ca: &Ca, url: &str) -> Result<Option<(T, Answer)>, Trouble> {
    match ca.account.order(url.to_owned()).await {
        Ok(_) | Err(Error::Json(_)) => {
            let answer = ca.https.last();
            Ok(serde_json::from_slice(&answer.body).ok().map(|read| (read, answer)))
        }
        Err(error) => match ca.trouble(&error) {
            // It has no such thing.
            trouble if trouble.is_answer() => Ok(None),
            trouble => Err(trouble),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_gone_on_with_if_it_is_the_same_and_still_open() {
        let set = NameSet::group(["shop.example", "*.shop.example"]).remove(0);
        let is_of = |status: &str, names: &[&str], profile: Option<&str>, wanted| {
            let names: Vec<String> =
                names.iter().map(|name| format!("{{\"type\":\"dns\",\"value\":\"{name}\"}}")).collect();
            let profile = profile.map_or(String::new(), |profile| format!(",\"profile\":\"{profile}\""));
            let text = format!("{{\"status\":\"{status}\",\"identifiers\":[{}]{profile}}}", names.join(","));
            serde_json::from_str::<Order>(&text).unwrap().is_of(&set, wanted)
        };
        let both = ["*.shop.example", "shop.example"];
        assert!(is_of("pending", &both, None, None) && is_of("ready", &both, Some("a"), Some("a")));
        assert!(is_of("pending", &both, Some("default"), None), "a CA may name the profile that it chose");
        for status in ["processing", "valid", "invalid"] {
            assert!(!is_of(status, &both, None, None), "{status}");
        }
        assert!(!is_of("pending", &both[..1], None, None));
        assert!(!is_of("pending", &both, Some("a"), Some("b")) && !is_of("pending", &both, None, Some("b")));
    }
}
