//! `inspect`: what endpoints negotiate.

use courser_lab::to_record;
use courser_load::inspect::{
    self, ClientKind, EarlyData, HandshakeBytes, InspectError, InspectedEndpoint, Inspection, Negotiated,
    Options, Order, PostQuantum, Resumption, Retry, Served, TimeOfBoth,
};
use courser_report::figure::count;
use courser_report::layout::{Page, Style, Tone};
use serde_json::{Value, json};

use crate::cli::InspectArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};

/// What came of an endpoint.
type Answer = Result<Inspection, InspectError>;

/// Asks all endpoints, and prints what each negotiates. Those that cannot be asked are told with the others, and the
/// first of them decides how the program ends.
pub(crate) fn inspect(args: &InspectArgs) -> Result<Ended, Failure> {
    let target = |url: &courser_load::url::Url| InspectedEndpoint {
        host: url.host.clone(),
        port: url.port,
        name: args.sni.clone(),
    };
    let targets: Vec<InspectedEndpoint> = args.endpoints.iter().map(target).collect();
    let options = Options { timeout: args.timeout, ..Options::default() };
    let answers = inspect::inspect_all(&targets, &options);
    let answered: Vec<(&InspectedEndpoint, &Answer)> = targets.iter().zip(&answers).collect();
    if args.json {
        print(&format!("{:#}\n", document(&answered)));
    } else {
        print(&tables(&answered, style()));
    }
    let failed = answered.iter().find_map(|(target, answer)| Some((target, answer.as_ref().err()?)));
    failed.map_or(Ok(Ended::Well), |(target, why)| Err(failure(target, why)))
}

fn failure(target: &InspectedEndpoint, why: &InspectError) -> Failure {
    let message = format!("{target}: {why}");
    match why {
        InspectError::BadName(_) => Failure::Usage(message),
        InspectError::Unknown(_) | InspectError::Unreachable(_) => Failure::Unreachable(message),
        _ => Failure::NoTls(message),
    }
}

fn tables(answered: &[(&InspectedEndpoint, &Answer)], style: Style) -> String {
    let mut page = Page::new(style);
    for (index, (target, answer)) in answered.iter().enumerate() {
        if index > 0 {
            page.line(Tone::Plain, "");
        }
        match answer {
            Ok(found) => endpoint(&mut page, target, found),
            Err(why) => page.paragraph(Tone::Bad, "", &format!("{target}: {why}")),
        }
    }
    page.finish()
}

fn endpoint(page: &mut Page, target: &InspectedEndpoint, found: &Inspection) {
    let connections = count(found.connections.into());
    page.line(Tone::Heading, &format!("{target} ({}), {connections} connections", found.address));
    let rows = found.rows();
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    for row in rows {
        page.paragraph(Tone::Plain, &format!("  {:<width$}  ", row.what), &row.found);
    }
}

fn document(answered: &[(&InspectedEndpoint, &Answer)]) -> Value {
    let endpoint = |(target, answer): &(&InspectedEndpoint, &Answer)| match answer {
        Ok(found) => entry(target, found),
        Err(why) => json!({ "target": target.to_string(), "name": target.name, "error": why.to_string() }),
    };
    json!({
        "format": "courser-inspect",
        "version": 1,
        "tool": to_record::tool(),
        "endpoints": answered.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

fn entry(target: &InspectedEndpoint, found: &Inspection) -> Value {
    let protocols = found.protocols.iter().map(|name| String::from_utf8_lossy(name));
    json!({
        "target": target.to_string(),
        "name": target.name,
        "address": found.address.to_string(),
        "connections": found.connections,
        "versions": found.versions.iter().map(version).collect::<Vec<_>>(),
        "key_share_of_another_group": found.retry.map(|retry| match retry {
            Retry::TakesShare => "taken",
            Retry::AsksForBest => "hello-retry-request",
        }),
        "certificates": found.certificates.iter().map(certificate).collect::<Vec<_>>(),
        "asks_for_client_certificate": found.asks_certificate,
        "application_protocols": protocols.collect::<Vec<_>>(),
        "http2_spoken": found.http2,
        "resumptions": found.resumptions.iter().map(resumption).collect::<Vec<_>>(),
        "tickets": found.tickets,
        "early_data": found.early_data.map(|early| match early {
            EarlyData::NotAllowed => "not-allowed",
            EarlyData::Refused => "refused",
            EarlyData::Accepted => "accepted",
        }),
        "x25519mlkem768": found.post_quantum.as_ref().map(post_quantum),
    })
}

fn version(found: &Negotiated) -> Value {
    json!({
        "version": found.version_name(),
        "suites": found.suite_names(),
        "order": found.order.map(|order| if order == Order::Server { "server" } else { "client" }),
        "chacha_for_clients_that_prefer_it": found.chacha_on_wish,
        "groups": found.group_names(),
        "finite_field_bits": found.prime_bits,
    })
}

fn certificate(served: &Served) -> Value {
    let leaf = &served.leaf;
    json!({
        "to": if served.to == ClientKind::Ecdsa { "ecdsa" } else { "rsa" },
        "subject": leaf.subject,
        "issuer": leaf.issuer,
        "names": leaf.names,
        "key": leaf.key,
        "not_before_unix_s": leaf.not_before,
        "not_after_unix_s": leaf.not_after,
        "chain_length": served.length,
        "chain_bytes": served.bytes,
    })
}

fn resumption(tried: &Resumption) -> Value {
    json!({
        "version": tried.version_name(),
        "by": tried.kind_name(),
        "attempts": tried.attempts,
        "offered": tried.offered,
        "resumed": tried.resumed,
    })
}

fn post_quantum(found: &PostQuantum) -> Value {
    let bytes = |of: &HandshakeBytes| json!({ "client_hello": of.client_hello, "server_hello": of.server_hello, "handshake": of.all });
    let time = |of: &TimeOfBoth| {
        let (share, shares) = of.share();
        json!({
            "handshakes_of_each": of.pairs,
            "median_s": of.hybrid,
            "x25519_median_s": of.classical,
            "longer_s": of.longer,
            "longer_s_interval": [of.interval.low, of.interval.high],
            "share": share,
            "share_interval": [shares.low, shares.high],
            "difference_seen": of.is_seen(),
        })
    };
    json!({
        "bytes": bytes(&found.hybrid),
        "x25519_bytes": bytes(&found.classical),
        "more_bytes": found.more_bytes(),
        "share_of_bytes": found.share_of_bytes(),
        "time": found.time.as_ref().map(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> (InspectedEndpoint, Answer) {
        let target = InspectedEndpoint::parse("a.test:8443").expect("an endpoint");
        (target, Err(InspectError::NotTls))
    }

    #[test]
    fn an_endpoint_that_cannot_be_asked_is_told_with_the_others() {
        let (target, answer) = refused();
        let text = tables(&[(&target, &answer), (&target, &answer)], Style::default());
        let line = "a.test:8443: the server does not speak TLS on this port\n";
        assert_eq!(text, format!("{line}\n{line}"));
        let document = document(&[(&target, &answer)]);
        assert_eq!((&document["format"], &document["version"]), (&json!("courser-inspect"), &json!(1)));
        assert_eq!(document["endpoints"][0]["error"], "the server does not speak TLS on this port");
    }

    #[test]
    fn each_kind_of_failure_has_its_exit_code() {
        let (target, _) = refused();
        let kind = |why| failure(&target, &why);
        assert!(matches!(kind(InspectError::NotTls), Failure::NoTls(_)));
        assert!(matches!(kind(InspectError::Unreachable("refused".into())), Failure::Unreachable(_)));
        assert!(matches!(kind(InspectError::BadName("no name".into())), Failure::Usage(_)));
    }
}
