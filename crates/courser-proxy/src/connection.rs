//! The life of one connection, step by step. Each step takes what the one before gave, so none can be skipped,
//! repeated or done out of order; a step that ends the connection gives an [`EarlyClose`] instead.

use crate::certificate::Selected;
use crate::classify::Classified;
use crate::client::{Accepted, EarlyClose};
use crate::route::{self, Route};
use crate::{backend, certificate, classify, close, handshake, pipe, proxy_header, resume};

/// Serves one connection from its first byte to its line in the log.
pub(crate) async fn serve(accepted: Accepted) {
    if let Err(early) = path(accepted).await {
        close::close_early(*early).await;
    }
}

async fn path(accepted: Accepted) -> Result<(), Box<EarlyClose>> {
    let selected = follow_route(classify::classify(accepted).await?)?;
    let planned = resume::plan_resumption(selected).await;
    let secured = handshake::handshake(planned).await?;
    let connected = backend::connect(secured).await?;
    let header_sent = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::pipe(header_sent).await;
    close::close(finished).await;
    Ok(())
}

/// Apart from the path: what is borrowed there would stay in its future to the end, 248 bytes of each connection.
fn follow_route(classified: Classified) -> Result<Selected, Box<EarlyClose>> {
    match route::route(&classified) {
        Route::Terminate(host) => certificate::select(classified, host),
        Route::Refuse => Err(route::refuse(classified)),
    }
}
