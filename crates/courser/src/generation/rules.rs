//! The rules of a listener, from settings.

use std::collections::HashMap;
use std::sync::Arc;

use courser_config::{
    Backends, HostConfig, ListenerConfig, RouteAction, RouteConditions, RouteRule, SendProxy,
    SessionCondition,
};
use courser_proxy::settings::{Action, Conditions, Forwarding, Rule, ServerNames, VirtualHost};

use crate::exit::Failure;

use super::{Context, forwarding, version_of};

/// The rules, for the hosts of the listener by their names.
pub(super) fn of(
    settings: &ListenerConfig,
    hosts: &HashMap<&str, Arc<VirtualHost>>,
    context: &Context<'_>,
) -> Result<Vec<Rule>, Failure> {
    let rule = |rule: &RouteRule| {
        let action = match &rule.action {
            RouteAction::Terminate(host) => Action::Terminate(Arc::clone(&hosts[host.as_str()])),
            RouteAction::Relay { pool, send_proxy } => {
                Action::Relay(Arc::new(relay(pool, *send_proxy, settings, context)?))
            }
            RouteAction::Refuse => Action::Refuse,
        };
        Ok(Rule { when: conditions(&rule.when), action })
    };
    settings.routes.iter().map(rule).collect()
}

/// Timeouts are those of the listener.
fn relay(
    pool: &str,
    send_proxy: SendProxy,
    listener: &ListenerConfig,
    context: &Context<'_>,
) -> Result<Forwarding, Failure> {
    let host =
        HostConfig { backends: Backends::Pool(pool.to_owned()), send_proxy, ..listener.default.clone() };
    forwarding(listener, &host, context)
}

fn conditions(when: &RouteConditions) -> Conditions {
    Conditions {
        server_names: when.server_names.as_deref().map(server_names),
        alpn: when.alpn.iter().map(|protocol| protocol.clone().into_bytes()).collect(),
        rsa_only: when.key.is_some(),
        version: when.version.map(version_of),
        session: when.session.map(|session| session == SessionCondition::Offered),
    }
}

fn server_names(names: &[String]) -> ServerNames {
    let mut found = ServerNames::default();
    for name in names {
        match name.as_str() {
            "" => found.none = true,
            name => found.names.insert(name, ()),
        }
    }
    found
}
