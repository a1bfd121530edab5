//! Which workgroups a worker does in a segment.
//!
//! Every worker has a share: a stretch of consecutive workgroups, of which it takes one chunk after the other. Who has
//! finished its own takes chunks of the others' shares, so a worker that is late, or never came, leaves its share to
//! them. Workers that are equally fast do the same workgroups in every segment: what those touch is still in the
//! caches of their cores, and so is the counter of their share.
//!
//! For the same reason a share has two counters, for one segment and the next in turn. While a segment runs, each worker
//! puts its counter for the next one back to the start; nobody uses that one, because all have met since they did. Only
//! for members that never came somebody else must do it: the last to arrive, whom the others wait for.

use std::sync::atomic::{AtomicU64, Ordering};

/// The shares of all workers of a launch.
pub(crate) struct Shares {
    total: u64,
    chunk: u64,
    counters: Vec<[Counter; 2]>,
}

/// The next workgroup of a share that nobody has taken, alone on its cache line and the one that is fetched with it.
#[repr(align(128))]
struct Counter(AtomicU64);

/// Where a worker is among the shares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Whose share is its own.
    pub(crate) member: usize,
    /// How many shares it has found finished in this segment, its own first.
    finished: usize,
    /// Which counters this segment uses.
    phase: usize,
}

impl Place {
    /// The place of a member before a segment.
    pub(crate) fn of(member: usize) -> Place {
        Place { member, finished: 0, phase: 0 }
    }

    /// Goes on to the next segment, when all workers have met.
    pub(crate) fn next(&mut self) {
        (self.finished, self.phase) = (0, 1 - self.phase);
    }
}

impl Shares {
    /// Shares of so many workgroups for so many workers, taken in chunks.
    pub(crate) fn new(total: u64, members: usize, chunk: u64) -> Shares {
        let counters = (0..members.max(1)).map(|_| [0; 2].map(|_| Counter(AtomicU64::new(0)))).collect();
        let shares = Shares { total, chunk: chunk.max(1), counters };
        for member in 0..shares.counters.len() {
            (0..2).for_each(|phase| shares.renew(member, phase));
        }
        shares
    }

    /// Makes the share of a worker available for the next segment. It calls this before it arrives at the meeting.
    pub(crate) fn renew_own(&self, place: &Place) {
        self.renew(place.member, 1 - place.phase);
    }

    /// Makes the shares available for the next segment of those who are not among so many members. The last to arrive
    /// calls this.
    pub(crate) fn renew_absent(&self, place: &Place, members: usize) {
        (members..self.counters.len()).for_each(|member| self.renew(member, 1 - place.phase));
    }

    fn renew(&self, member: usize, phase: usize) {
        self.counters[member][phase].0.store(self.start(member), Ordering::Relaxed);
    }

    /// The next workgroups for a worker, from the first to before the last; `None` when all are taken.
    pub(crate) fn take(&self, place: &mut Place) -> Option<(u64, u64)> {
        let members = self.counters.len();
        while place.finished < members {
            let whose = (place.member + place.finished) % members;
            let (counter, end) = (&self.counters[whose][place.phase].0, self.start(whose + 1));
            // Looked at first: writing would take the counter away from the core that still uses it.
            if counter.load(Ordering::Relaxed) < end {
                let first = counter.fetch_add(self.chunk, Ordering::Relaxed);
                if first < end {
                    return Some((first, first.saturating_add(self.chunk).min(end)));
                }
            }
            place.finished += 1;
        }
        None
    }

    /// The first workgroup of a share. Shares differ by one workgroup at the most.
    fn start(&self, member: usize) -> u64 {
        let (member, members) = (member as u64, self.counters.len() as u64);
        self.total / members * member + member.min(self.total % members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// All that a worker gets in a segment, as single workgroups.
    fn all(shares: &Shares, place: &mut Place) -> Vec<u64> {
        std::iter::from_fn(|| shares.take(place)).flat_map(|(first, end)| first..end).collect()
    }

    #[test]
    fn one_worker_gets_everything_its_own_share_first() {
        for (total, members, chunk) in [(1, 1, 1), (10, 3, 2), (10, 3, 100), (7, 7, 1), (1000, 8, 7)] {
            let shares = Shares::new(total, members, chunk);
            let mut place = Place::of(0);
            for _ in 0..5 {
                let mut taken = all(&shares, &mut place);
                assert_eq!(taken[0], 0);
                taken.sort_unstable();
                assert!(taken.into_iter().eq(0..total), "{total} {members} {chunk}");
                assert_eq!(all(&shares, &mut place), [] as [u64; 0], "nothing twice");
                shares.renew_own(&place);
                shares.renew_absent(&place, 1);
                place.next();
            }
        }
    }

    #[test]
    fn workers_share_every_segment() {
        const SEGMENTS: usize = 50;
        // The fourth never comes.
        let (shares, barrier) = (Shares::new(10_000, 4, 3), Barrier::new(3));
        let work = |member: usize| {
            let mut place = Place::of(member);
            let segment = |_| {
                let taken = all(&shares, &mut place);
                shares.renew_own(&place);
                if barrier.wait().is_leader() {
                    shares.renew_absent(&place, 3);
                }
                barrier.wait();
                place.next();
                taken
            };
            (0..SEGMENTS).map(segment).collect::<Vec<_>>()
        };
        let taken: Vec<Vec<Vec<u64>>> = std::thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..3).map(|member| scope.spawn(move || work(member))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        for segment in 0..SEGMENTS {
            let mut all: Vec<u64> = taken.iter().flat_map(|worker| &worker[segment]).copied().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..10_000));
        }
    }
}
