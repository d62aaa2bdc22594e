//! `/events`: the status, and then each second what has changed, as server-sent events (HTML, section 9.2). May not wait for
//! who does not read: that stream ends.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use serde_json::{Map, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::MissedTickBehavior;

use crate::status_source::StatusSource;

/// Streams at a time. There is room for probes and scrapers beside them.
pub(crate) const MOST_STREAMS: usize = 12;

/// Between two differences.
const EACH: Duration = Duration::from_secs(1);

/// Messages that may wait for a client. Beside them the system holds a few hundred KiB.
const WAITING: usize = 4;

/// The open streams.
pub(crate) struct Events {
    source: Arc<StatusSource>,
    places: Arc<Semaphore>,
    audience: Mutex<Audience>,
}

#[derive(Default)]
struct Audience {
    /// What all of them know; `None` where there is nobody.
    known: Option<Arc<Value>>,
    clients: Vec<Client>,
}

struct Client {
    messages: Sender<Bytes>,
    exchange: Arc<Exchange>,
}

impl Events {
    pub(crate) fn new(source: Arc<StatusSource>) -> Self {
        Self { source, places: Arc::new(Semaphore::new(MOST_STREAMS)), audience: Mutex::default() }
    }

    /// A stream that begins with all that there is to know. `None` where there are too many.
    pub(super) fn open(&self, exchange: &Arc<Exchange>) -> Option<EventStream> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut audience = self.audience();
        // What the others know, so that the next difference is one for all.
        let known = Arc::clone(audience.known.get_or_insert_with(|| self.source.latest()));
        let (messages, waiting) = channel(WAITING);
        messages.try_send(message("state", &known)).ok()?;
        exchange.is_stream.store(true, Ordering::Relaxed);
        audience.clients.push(Client { messages, exchange: Arc::clone(exchange) });
        Some(EventStream { waiting, _place: place })
    }

    /// Sends differences for as long as the server runs.
    pub(super) async fn send(&self) {
        let mut seconds = tokio::time::interval(EACH);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            self.audience().send(|| self.source.latest());
        }
    }

    fn audience(&self) -> MutexGuard<'_, Audience> {
        self.audience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience {
    fn send(&mut self, latest: impl FnOnce() -> Arc<Value>) {
        self.clients.retain(|client| !client.messages.is_closed());
        let Some(known) = self.known.take().filter(|_| !self.clients.is_empty()) else { return };
        let now = latest();
        let change = difference(&known, &now).unwrap_or_else(|| Value::Object(Map::new()));
        let message = message("change", &change);
        self.clients.retain(|client| {
            let is_sent = client.messages.try_send(message.clone()).is_ok();
            if !is_sent {
                client.exchange.is_stalled.notify_one();
            }
            is_sent
        });
        self.known = Some(now);
    }
}

/// JSON has no ends of lines in it.
fn message(event: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

/// What makes one value of another, as a merge patch (RFC 7396): `null` for what is gone or has no value, arrays as a whole.
/// `None` where they are the same.
fn difference(before: &Value, now: &Value) -> Option<Value> {
    match (before, now) {
        _ if before == now => None,
        (Value::Object(before), Value::Object(now)) => {
            let changed = now.iter().filter_map(|(key, now)| {
                let change = match before.get(key) {
                    Some(before) => difference(before, now)?,
                    None => now.clone(),
                };
                Some((key.clone(), change))
            });
            let gone = before.keys().filter(|key| !now.contains_key(*key));
            Some(changed.chain(gone.map(|key| (key.clone(), Value::Null))).collect::<Map<_, _>>().into())
        }
        _ => Some(now.clone()),
    }
}

/// A request and its answer, as far as time limits go.
#[derive(Default)]
pub(crate) struct Exchange {
    is_stream: AtomicBool,
    is_stalled: Notify,
}

impl Exchange {
    /// Returns when it has taken too long: `deadline`, or, where it is a stream, when nobody reads that.
    pub(super) async fn overtime(&self, deadline: Duration) {
        let late = async {
            tokio::time::sleep(deadline).await;
            if self.is_stream.load(Ordering::Relaxed) {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = late => {}
            () = self.is_stalled.notified() => {}
        }
    }
}

/// The body of an answer that goes on.
pub(crate) struct EventStream {
    waiting: Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.waiting.poll_recv(context).map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The algorithm of RFC 7396, section 2.
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let target = target.as_object_mut().unwrap();
        for (key, change) in patch {
            if change.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
    }

    #[test]
    fn a_difference_makes_the_one_of_the_other() {
        let values = [
            json!({}),
            json!({"a": 1, "b": {"c": [1, 2], "d": {}}}),
            json!({"a": 2, "b": {"c": [1], "e": {"f": "x"}}}),
            json!({"b": {"c": [1, 2], "d": {"g": 0.5}}}),
            json!({"a": {"b": 1}, "b": "none"}),
        ];
        for before in &values {
            for now in &values {
                let mut patched = before.clone();
                match difference(before, now) {
                    None => assert_eq!(before, now),
                    Some(patch) => merge(&mut patched, &patch),
                }
                assert_eq!(&patched, now, "from {before}");
            }
        }
        assert_eq!(
            difference(&json!({"a": 1, "b": 2}), &json!({"a": 1, "c": 3})),
            Some(json!({"b": null, "c": 3}))
        );
    }

    #[test]
    fn who_does_not_read_is_let_go_and_the_others_are_not() {
        let mut audience = Audience { known: Some(Arc::new(json!({"n": 0}))), clients: Vec::new() };
        let mut join = || {
            let (messages, waiting) = channel(WAITING);
            audience.clients.push(Client { messages, exchange: Arc::default() });
            waiting
        };
        let (mut reader, _stalled) = (join(), join());
        for n in 1..=WAITING + 1 {
            audience.send(|| Arc::new(json!({ "n": n })));
            let text = reader.try_recv().unwrap();
            assert_eq!(text, format!("event: change\ndata: {{\"n\":{n}}}\n\n"));
        }
        assert_eq!(audience.clients.len(), 1);
        drop(reader);
        audience.send(|| panic!("nobody is there to be told"));
        assert!(audience.known.is_none());
    }
}
