//! Work on each of many things, shared among the processors.

use std::num::NonZeroUsize;
use std::thread;

/// What `work` makes of each item, in their order. Of few the calling thread does it by itself.
pub(crate) fn on_every_cpu<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = items.len().div_ceil(threads).max(FEW);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    thread::scope(|scope| {
        let work = |chunk: &'_ [T]| chunk.iter().map(&work).collect::<Vec<_>>();
        let workers: Vec<_> = items.chunks(share).map(|chunk| scope.spawn(move || work(chunk))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("the work does not panic")).collect()
    })
}

/// So many are not worth a thread: to look at a file takes 2 us, to start a thread 50.
const FEW: usize = 32;
