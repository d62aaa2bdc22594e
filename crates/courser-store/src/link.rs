//! A connection to a store, of whatever kind, and the four commands that are sent on it.
//!
//! Clones share the connection: commands of many callers travel together, and answers come in order.

use std::time::Duration;

use redis::aio::{AsyncPushSender, ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo, RedisError, Value,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::{Answer, Fault, judge};
use crate::bounded::Bounded;

/// How long a connection may take to be made: several times what a network between continents needs for TCP, TLS and
/// login. Five attempts and the pauses between them fit into the breaker's window.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a command may take that no client waits for. An answer after that shows only that the store is slow.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection of a worker.
#[derive(Clone)]
pub(crate) enum Link {
    /// To the server that the URL names.
    One(MultiplexedConnection),
    /// To the server that a sentinel has named.
    Named(MultiplexedConnection),
    /// To the nodes of a cluster, each when it is first needed. It mends itself.
    Cluster(ClusterConnection),
}

impl Link {
    /// Sends a command and waits for its answer, at most for `limit`.
    pub(crate) async fn ask(&mut self, command: &Cmd, limit: Duration) -> Result<Answer, Fault> {
        match self {
            Self::One(link) | Self::Named(link) => within(limit, link.req_packed_command(command)).await,
            Self::Cluster(link) => within(limit, link.req_packed_command(command)).await.map_err(astray),
        }
    }

    /// Whether there is an answer at all. In a cluster any node may give it: one that is dead is the cluster's affair.
    pub(crate) async fn ping(&mut self, limit: Duration) -> Result<(), Fault> {
        let ping = redis::cmd("PING");
        let answer = match self {
            Self::Cluster(link) => {
                let anywhere = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
                within(limit, link.route_command(ping, anywhere)).await
            }
            Self::One(_) | Self::Named(_) => self.ask(&ping, limit).await,
        };
        answer.map(drop)
    }

    /// Whether another connection has to be made after `fault`.
    pub(crate) fn is_broken_by(&self, fault: &Fault) -> bool {
        match (self, fault) {
            (Self::Cluster(_), _) | (_, Fault::Timeout) => false,
            // After a failover the old primary is still there: as a replica.
            (Self::Named(_), Fault::Refused(code)) => matches!(code.as_str(), "READONLY" | "MASTERDOWN"),
            (_, Fault::Refused(_)) => false,
            (_, Fault::Lost(_) | Fault::Protocol(_)) => true,
        }
    }
}

async fn within(
    limit: Duration,
    asked: impl Future<Output = Result<Value, RedisError>>,
) -> Result<Answer, Fault> {
    tokio::time::timeout(limit, asked).await.map_or(Err(Fault::Timeout), judge)
}

/// The library follows a cluster's redirections; one that is left over leads to a node that cannot be reached, or round in
/// circles. A new connection asks anew who has what.
fn astray(fault: Fault) -> Fault {
    match fault {
        Fault::Refused(code) if matches!(code.as_str(), "MOVED" | "ASK") => {
            Fault::Lost("the node of the cluster that has this part cannot be reached".to_owned())
        }
        fault => fault,
    }
}

/// A connection to one server over a stream of ours. It lives on the worker's thread.
pub(crate) async fn over<S>(
    stream: S,
    login: &RedisConnectionInfo,
    config: AsyncConnectionConfig,
) -> Result<Link, RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let made = MultiplexedConnection::new_with_config(login, Bounded::new(stream), config);
    let (link, driver) = made.await?;
    tokio::task::spawn_local(driver);
    Ok(Link::One(link))
}

/// Settings of a connection to one server. The time that a command may take is ours to watch.
pub(crate) fn config(broken: impl Fn() + Send + Sync + 'static) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(None)
        .set_push_sender(OnDisconnect(broken))
}

struct OnDisconnect<F>(F);

impl<F: Fn() + Send + Sync + 'static> AsyncPushSender for OnDisconnect<F> {
    fn send(&self, info: PushInfo) -> Result<(), redis::aio::SendError> {
        if info.kind == PushKind::Disconnection {
            (self.0)();
        }
        Ok(())
    }
}

/// Settings of the connections to a cluster: one more try after a redirection or a lost connection, and that at once.
pub(crate) fn cluster_settings(builder: ClusterClientBuilder) -> ClusterClientBuilder {
    builder
        .use_protocol(ProtocolVersion::RESP3)
        .connection_timeout(CONNECT_TIMEOUT)
        .response_timeout(WRITE_TIMEOUT)
        .retries(2)
        .min_retry_wait(1)
        .max_retry_wait(50)
}
