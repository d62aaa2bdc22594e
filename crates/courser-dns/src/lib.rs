//! SRV records: which servers offer a service (RFC 2782). The system's resolver, which looks names up, does not know them.
//!
//! The only place for hickory-resolver. Reads the system's resolver configuration anew with each look-up, keeps no answer,
//! and decides nothing: how long an answer holds is its caller's affair.

use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RData;

/// What is known of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceLookup {
    /// Its records, and how long they hold.
    Found(Vec<ServiceRecord>, Duration),
    /// There is no such name, no such record, or one that says that there is no server. The resolver knows.
    Denied,
    /// The resolver does not know: it did not answer, or failed. With the reason.
    Failed(String),
}

/// An SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Those of a higher number are for when those of the lowest cannot be reached.
    pub priority: u16,
    /// Share among those of the same priority.
    pub weight: u16,
    /// At the target's addresses.
    pub port: u16,
    /// A host name without a dot at its end.
    pub target: String,
}

/// Looks the SRV records of `name` up. Blocks for at most [`LONGEST`] for each of the system's name servers.
pub fn look_up_service(name: &str) -> ServiceLookup {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(look_up(name)).unwrap_or_else(|error| denied_or_failed(&error)),
        Err(error) => ServiceLookup::Failed(error.to_string()),
    }
}

async fn look_up(name: &str) -> Result<ServiceLookup, NetError> {
    let mut builder = TokioResolver::builder_tokio()?;
    let options = builder.options_mut();
    (options.cache_size, options.attempts, options.timeout) = (0, ATTEMPTS, LONGEST / 2);
    let answer = builder.build()?.srv_lookup(name).await?;
    let (mut records, mut seconds) = (Vec::new(), u32::MAX);
    for record in answer.answers() {
        let RData::SRV(found) = &record.data else { continue };
        seconds = seconds.min(record.ttl);
        // "A Target of "." means that the service is decidedly not available at this domain."
        if !found.target.is_root() {
            let target = found.target.to_ascii().trim_end_matches('.').to_ascii_lowercase();
            let (priority, weight, port) = (found.priority, found.weight, found.port);
            records.push(ServiceRecord { priority, weight, port, target });
        }
    }
    Ok(match records.is_empty() {
        true => ServiceLookup::Denied,
        false => ServiceLookup::Found(records, Duration::from_secs(seconds.into())),
    })
}

fn denied_or_failed(error: &NetError) -> ServiceLookup {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(found))
            if matches!(found.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
        {
            ServiceLookup::Denied
        }
        _ => ServiceLookup::Failed(error.to_string()),
    }
}

/// To each name server.
const ATTEMPTS: usize = 2;

/// Time for the answer of a name server, all attempts together.
pub const LONGEST: Duration = Duration::from_secs(4);
