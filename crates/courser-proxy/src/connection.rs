//! The life of one connection, step by step. Each step takes what the one before gave, so none can be skipped,
//! repeated or done out of order; a step that ends the connection gives an [`Ending`] instead.

use crate::client::{Accepted, EarlyClose};
use crate::{backend, certificate, classify, close, handshake, pipe, proxy_header, resume};

/// Serves one connection from its first byte to its line in the log.
pub(crate) async fn serve(accepted: Accepted) {
    if let Err(ending) = path(accepted).await {
        close::refuse(*ending).await;
    }
}

async fn path(accepted: Accepted) -> Result<(), Box<EarlyClose>> {
    let classified = classify::classify(accepted).await?;
    let chosen = certificate::select(classified)?;
    let primed = resume::plan_resumption(chosen).await;
    let secured = handshake::handshake(primed).await?;
    let connected = backend::connect(secured).await?;
    let announced = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::relay(announced).await;
    close::close(finished).await;
    Ok(())
}
