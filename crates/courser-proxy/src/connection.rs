//! The life of one connection, step by step. Each step takes what the one before gave, so none can be skipped,
//! repeated or done out of order; a step that ends the connection gives an [`EarlyClose`] instead.

use crate::certificate::Selected;
use crate::challenge::Asked;
use crate::classify::Classified;
use crate::client::{Accepted, EarlyClose};
use crate::handshake::Secured;
use crate::route::{self, Route};
use crate::{backend, certificate, challenge, classify, close, handshake, pipe, proxy_header, resume};

/// Serves one connection from its first byte to its line in the log.
pub(crate) async fn serve(accepted: Accepted) {
    let early = match path(accepted).await {
        Ok(()) => return,
        Err(Detour::Close(early)) => early,
        // Boxed, as below.
        Err(Detour::Challenge(asked)) => Box::pin(challenge::answer(*asked)).await,
        // Boxed, because few connections come here and all would have to hold the room for it.
        Err(Detour::Relay(secured)) => match Box::pin(relay(*secured)).await {
            Ok(()) => return,
            Err(early) => early,
        },
    };
    close::close_early(*early).await;
}

async fn path(accepted: Accepted) -> Result<(), Detour> {
    let selected = follow_route(classify::classify(accepted).await?)?;
    let planned = resume::plan_resumption(selected).await;
    let secured = handshake::handshake(planned).await?;
    let connected = backend::connect(secured).await?;
    let header_sent = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::pipe(header_sent).await;
    close::close(finished).await;
    Ok(())
}

/// The rest of the path again: as a step of it, it would cost each connection 192 bytes.
async fn relay(secured: Secured) -> Result<(), Box<EarlyClose>> {
    let connected = backend::connect(secured).await?;
    let header_sent = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::pipe(header_sent).await;
    close::close(finished).await;
    Ok(())
}

/// What becomes of a connection that does not go the whole path.
enum Detour {
    /// It ends.
    Close(Box<EarlyClose>),
    /// A CA gets its answer, and it ends.
    Challenge(Box<Asked>),
    /// It goes round the handshake, which is its backend's.
    Relay(Box<Secured>),
}

impl From<Box<EarlyClose>> for Detour {
    fn from(early: Box<EarlyClose>) -> Self {
        Self::Close(early)
    }
}

/// Apart from the path: what is borrowed there would stay in its future to the end, 248 bytes of each connection.
fn follow_route(classified: Classified) -> Result<Selected, Detour> {
    // Before any rule: the name waits for nothing else than this.
    if let Some(answer) = challenge::find(&classified) {
        return Err(Detour::Challenge(Box::new(Asked { classified, answer })));
    }
    match route::route(&classified) {
        Route::Terminate(host) => certificate::select(classified, host).map_err(Detour::from),
        Route::Relay(forwarding) => Err(Detour::Relay(Box::new(route::relay(classified, forwarding)))),
        Route::Refuse(reason, description) => Err(route::refuse(classified, reason, description).into()),
    }
}
