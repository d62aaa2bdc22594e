//! The life of one connection, step by step. Each step takes what the one before gave, so none can be skipped,
//! repeated or done out of order; a step that ends the connection gives an [`EarlyClose`] instead.

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
    let classified = classify::classify(accepted).await?;
    let host = match route::route(&classified) {
        Route::Terminate(host) => host,
        Route::Refuse => return Err(route::refuse(classified)),
    };
    let selected = certificate::select(classified, host)?;
    let planned = resume::plan_resumption(selected).await;
    let secured = handshake::handshake(planned).await?;
    let connected = backend::connect(secured).await?;
    let header_sent = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::pipe(header_sent).await;
    close::close(finished).await;
    Ok(())
}
