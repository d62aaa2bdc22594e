//! Which names share a certificate.

use std::fmt;

/// The names of one certificate: a name, its wildcard, or both.
///
/// Not all names of a host: where one of them cannot be proved any more, the others would end with it. A name and its
/// wildcard are proved by one record, so they fail together anyway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameSet {
    /// In lower case, without the wildcard's `*.`.
    base: String,
    /// Whether the base is a name of it.
    plain: bool,
    wildcard: bool,
}

impl NameSet {
    /// The sets of a host's names, in their order. Names are in lower case, wildcards begin with `*.`.
    pub fn group<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut sets: Vec<Self> = Vec::new();
        for name in names {
            let base = name.strip_prefix("*.");
            let is_wildcard = base.is_some();
            let base = base.unwrap_or(name);
            let place = sets.iter().position(|set| set.base == base).unwrap_or_else(|| {
                sets.push(Self { base: base.to_owned(), plain: false, wildcard: false });
                sets.len() - 1
            });
            sets[place].plain |= !is_wildcard;
            sets[place].wildcard |= is_wildcard;
        }
        sets
    }

    /// The names themselves.
    pub fn names(&self) -> Vec<String> {
        let plain = self.plain.then(|| self.base.clone());
        plain.into_iter().chain(self.wildcard.then(|| format!("*.{}", self.base))).collect()
    }

    /// The name that a TXT record proves, in place of tls-alpn-01, which cannot prove a wildcard (RFC 8737, section 3).
    pub fn needs_record(&self) -> bool {
        self.wildcard
    }

    /// Without the wildcard's `*.`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// What its folder is called. Nothing in it can lead elsewhere: no DNS name has a slash or a comma, nor is one `..`.
    pub(crate) fn file_name(&self) -> String {
        let base = &self.base;
        match (self.plain, self.wildcard) {
            (true, true) => format!("{base},wildcard"),
            (false, true) => format!("wildcard,{base}"),
            _ => base.clone(),
        }
    }
}

impl fmt::Display for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_wildcard_share_a_certificate_and_no_others_do() {
        let sets = NameSet::group(["shop.example", "www.shop.example", "*.shop.example", "*.b.example"]);
        let names: Vec<_> = sets.iter().map(NameSet::names).collect();
        assert_eq!(
            names,
            [vec!["shop.example", "*.shop.example"], vec!["www.shop.example"], vec!["*.b.example"]]
        );
        let files: Vec<_> = sets.iter().map(NameSet::file_name).collect();
        assert_eq!(files, ["shop.example,wildcard", "www.shop.example", "wildcard,b.example"]);
        assert_eq!(sets.iter().map(NameSet::needs_record).collect::<Vec<_>>(), [true, false, true]);
    }
}
