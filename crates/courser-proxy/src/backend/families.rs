//! A name with addresses of both families, of which one does not work from here: nobody waits for that to be found out.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use courser_balance::{Pick, Request, ServerPermit};
use courser_net::{Address, Stream};
use courser_telemetry::Close;

use super::{FAMILY_DELAY, failure};
use crate::client::Client;
use crate::clock::since_start;
use crate::pool::{Backend, Target};
use crate::settings::Forwarding;

/// Goes on with the attempt of `late`, beside one to a server of the other family. The first to connect wins (RFC 8305,
/// section 5); the place is the winner's, where that is not `late`. A server that is overtaken has failed: after three
/// times it is ejected, and the other family is the first choice.
pub(super) async fn race(
    client: &mut Client,
    forwarding: &Forwarding,
    late: &Arc<Backend>,
    mut connecting: Pin<&mut impl Future<Output = io::Result<Stream>>>,
) -> Result<(Option<ServerPermit<Target>>, io::Result<Stream>), Close> {
    client.deadline.set(forwarding.connect_timeout - FAMILY_DELAY);
    let rival = rival(client, forwarding, late);
    let begun = Instant::now();
    let mut attempt = rival.as_ref().map(|place| {
        let server = Arc::clone(place.server());
        Box::pin(async move { Stream::connect(&server.target.address).await })
    });
    let mut rival_error = None;
    let (has_rival_won, result) = poll_fn(|cx| {
        if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
            return Poll::Ready(Ok::<_, Close>((false, result)));
        }
        match attempt.as_mut().map(|attempt| attempt.as_mut().poll(cx)) {
            Some(Poll::Ready(Ok(stream))) => return Poll::Ready(Ok((true, Ok(stream)))),
            Some(Poll::Ready(Err(error))) => (attempt, rival_error) = (None, Some(error)),
            Some(Poll::Pending) | None => {}
        }
        client.check_reset(cx)?;
        client.deadline.poll_expired(cx).map(|()| Ok((false, Err(ErrorKind::TimedOut.into()))))
    })
    .await?;
    let Some(rival) = rival else { return Ok((None, result)) };
    if let Some(error) = rival_error {
        failure(client, forwarding, rival.server(), &error.into());
    }
    if !has_rival_won {
        return Ok((None, result));
    }
    let server = rival.server();
    server.connected(begun.elapsed(), since_start());
    let why =
        format!("no connection within {} ms; {} was faster", FAMILY_DELAY.as_millis(), server.target.address);
    failure(client, forwarding, late, &io::Error::new(ErrorKind::TimedOut, why).into());
    client.account.backend = Some(Arc::clone(server));
    Ok((Some(rival), result))
}

/// A place at a good server of the other family, where there is one and the pool may make a further attempt.
fn rival(client: &Client, forwarding: &Forwarding, late: &Backend) -> Option<ServerPermit<Target>> {
    let pool = forwarding.pool.servers();
    let family = is_v6(&late.target.address)?;
    let is_other = |server: &Backend| is_v6(&server.target.address) == Some(!family);
    let others: Vec<_> = pool.servers().iter().filter(|server| !is_other(server)).map(Arc::clone).collect();
    let request = Request { tried: &others, ..forwarding.pool.request(client.worker.index, None) };
    match pool.choose(&request, since_start()) {
        Pick::Server(place)
            if place.server().availability(since_start()).is_good()
                && pool.retries.withdraw(since_start()) =>
        {
            Some(place)
        }
        _ => None,
    }
}

/// `None` for a unix socket.
fn is_v6(address: &Address) -> Option<bool> {
    match address {
        Address::Ip(SocketAddr::V6(_)) => Some(true),
        Address::Ip(SocketAddr::V4(_)) => Some(false),
        Address::Unix(_) | Address::Abstract(_) => None,
    }
}
