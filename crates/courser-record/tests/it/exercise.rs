//! What has to hold for any bytes that say they are a record: no panic, and what was read can be written and read.

use courser_record::{Record, Share, merge};

pub(crate) fn record(bytes: &[u8]) {
    let Ok(record) = Record::from_json(bytes) else { return };
    assert_eq!(Record::from_json(record.to_json()).expect("it was read once").to_json(), record.to_json());
    let part = |k: u32| {
        let mut part = record.clone();
        part.experiment.load.share = Some(Share { k, n: 2 });
        part
    };
    if let Ok(merged) = merge(vec![part(2), part(1)]) {
        Record::from_json(merged.to_json()).expect("a merged record is a record");
    }
}
