//! One kind of memory as a list of free ranges, in chunks no larger than a buffer of that kind may be.
//!
//! The policy is the one whose sizes clients know: the smallest fitting hole, else the open end that grows least, else a new
//! chunk. A list entry is a range of the future buffer; no memory is touched here.

use super::room;
use std::collections::TryReserveError;

/// Chunks that one kind of memory may be split into.
pub const MAX_CHUNKS: usize = 16;
/// Room of the last chunk: a backend gives that much or says that it cannot.
const OPEN: usize = usize::MAX / 2;

/// Free ranges that a chunk has room for at first.
const HOLES: usize = 64;

/// Where something lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which chunk.
    pub chunk: u32,
    /// Bytes from its start.
    pub offset: usize,
}

/// A free range; the last one of a chunk is its open end.
#[derive(Clone, Copy)]
struct Hole {
    offset: usize,
    size: usize,
}

struct Chunk {
    holes: Vec<Hole>,
    /// Bytes that were in use at most.
    high: usize,
}

/// Free ranges of one kind of memory. All sizes given to it are multiples of the alignment already.
pub struct Space {
    chunks: Vec<Chunk>,
    max_chunk: usize,
    /// Bytes in use now, and at most.
    live: usize,
    peak: usize,
}

impl Space {
    /// Empty, with chunks of up to `max_chunk` bytes.
    pub fn new(max_chunk: usize) -> Self {
        Space { chunks: Vec::new(), max_chunk: max_chunk.min(OPEN), live: 0, peak: 0 }
    }

    /// Bytes of each chunk.
    pub fn sizes(&self) -> Vec<usize> {
        self.chunks.iter().map(|c| c.high).collect()
    }

    /// Bytes of all chunks; saturates.
    pub fn total(&self) -> usize {
        self.chunks.iter().fold(0, |sum, c| sum.saturating_add(c.high))
    }

    /// Whether no byte is there that was not needed at some step: nothing can be smaller.
    pub fn is_tight(&self) -> bool {
        self.total() == self.peak
    }

    /// Takes `size` bytes; `None` when no address is left.
    pub fn take(&mut self, size: usize) -> Result<Option<Place>, TryReserveError> {
        let found = match self.best_hole(size).or_else(|| self.best_end(size)) {
            None => self.new_chunk(size)?,
            found => found,
        };
        let Some((chunk, hole)) = found else { return Ok(None) };
        let c = &mut self.chunks[chunk];
        let h = &mut c.holes[hole];
        let offset = h.offset;
        h.offset += size;
        h.size -= size;
        if h.size == 0 {
            c.holes.remove(hole);
        }
        c.high = c.high.max(offset + size);
        self.live = self.live.saturating_add(size);
        self.peak = self.peak.max(self.live);
        Ok(Some(Place { chunk: chunk as u32, offset }))
    }

    /// Gives back `size` bytes at `place`.
    pub fn give(&mut self, place: Place, size: usize) -> Result<(), TryReserveError> {
        let Some(c) = self.chunks.get_mut(place.chunk as usize).filter(|_| size > 0) else { return Ok(()) };
        self.live -= size.min(self.live);
        let at = c.holes.partition_point(|h| h.offset < place.offset);
        let joins_next = c.holes.get(at).is_some_and(|h| place.offset + size == h.offset);
        let joins_last = at > 0 && c.holes[at - 1].offset + c.holes[at - 1].size == place.offset;
        match (joins_last, joins_next) {
            (true, true) => {
                c.holes[at - 1].size += size + c.holes[at].size;
                c.holes.remove(at);
            }
            (true, false) => c.holes[at - 1].size += size,
            (false, true) => {
                c.holes[at].offset = place.offset;
                c.holes[at].size += size;
            }
            (false, false) => {
                c.holes.try_reserve(1)?;
                c.holes.insert(at, Hole { offset: place.offset, size });
            }
        }
        Ok(())
    }

    /// The smallest hole that fits, open ends aside; of equal ones the one that lies furthest; of chunks the last.
    fn best_hole(&self, size: usize) -> Option<(usize, usize)> {
        self.chunks.iter().enumerate().rev().find_map(|(c, chunk)| {
            let inner = chunk.holes.len().saturating_sub(1);
            let fits = chunk.holes[..inner].iter().enumerate().rev().filter(|(_, h)| h.size >= size);
            fits.min_by_key(|(_, h)| h.size).map(|(h, _)| (c, h))
        })
    }

    /// The open end that wastes least of what is reserved already, else the one that grows least.
    fn best_end(&self, size: usize) -> Option<(usize, usize)> {
        let mut best: Option<(i128, (usize, usize))> = None;
        for (c, chunk) in self.chunks.iter().enumerate() {
            let Some(h) = chunk.holes.last().filter(|h| h.size >= size) else { continue };
            let spare = chunk.high as i128 - h.offset as i128 - size as i128;
            let better = match best {
                None => true,
                Some((b, _)) => (b < 0 && spare > b) || (0..b).contains(&spare),
            };
            if better {
                best = Some((spare, (c, chunk.holes.len() - 1)));
            }
        }
        best.map(|(_, at)| at)
    }

    fn new_chunk(&mut self, size: usize) -> Result<Option<(usize, usize)>, TryReserveError> {
        if self.chunks.len() >= MAX_CHUNKS {
            return Ok(None);
        }
        // A tensor above the limit gets a chunk of its own size: the backend gives it or says that it cannot.
        let last = self.chunks.len() == MAX_CHUNKS - 1;
        let room = if last { OPEN } else { self.max_chunk.max(size) };
        if size > OPEN || room < size {
            return Ok(None);
        }
        let mut holes = room::list(HOLES)?;
        holes.push(Hole { offset: 0, size: room });
        room::push(&mut self.chunks, Chunk { holes, high: 0 })?;
        Ok(Some((self.chunks.len() - 1, 0)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn smallest_hole_then_open_end() {
        let mut s = Space::new(usize::MAX);
        let p: Vec<Place> = [64, 32, 96, 32].iter().map(|&n| s.take(n).unwrap().unwrap()).collect();
        assert_eq!(p.iter().map(|p| p.offset).collect::<Vec<_>>(), [0, 64, 96, 192]);
        s.give(p[0], 64).unwrap();
        s.give(p[2], 96).unwrap();
        assert_eq!(s.take(64).unwrap().unwrap().offset, 0);
        assert_eq!(s.take(64).unwrap().unwrap().offset, 96);
        assert_eq!(s.take(64).unwrap().unwrap().offset, 224);
        assert_eq!(s.sizes(), [288]);
    }

    #[test]
    fn neighbours_join() {
        let mut s = Space::new(usize::MAX);
        let p: Vec<Place> = (0..4).map(|_| s.take(32).unwrap().unwrap()).collect();
        for i in [0, 2, 1, 3] {
            s.give(p[i], 32).unwrap();
        }
        assert_eq!(s.take(128).unwrap().unwrap().offset, 0);
        assert_eq!(s.sizes(), [128]);
    }

    #[test]
    fn chunks_and_the_end_of_addresses() {
        let mut s = Space::new(128);
        assert_eq!(s.take(96).unwrap().unwrap(), Place { chunk: 0, offset: 0 });
        assert_eq!(s.take(64).unwrap().unwrap(), Place { chunk: 1, offset: 0 });
        assert_eq!(s.take(32).unwrap().unwrap(), Place { chunk: 0, offset: 96 });
        assert_eq!(s.take(512).unwrap().unwrap(), Place { chunk: 2, offset: 0 });
        assert_eq!(s.take(64).unwrap().unwrap(), Place { chunk: 1, offset: 64 });
        assert_eq!(s.take(usize::MAX - 31), Ok(None));
        assert_eq!(s.sizes(), [128, 128, 512]);
        for _ in 0..200 {
            s.take(128).unwrap().unwrap();
        }
        assert_eq!(s.sizes().len(), MAX_CHUNKS);
    }

    #[test]
    fn nothing_takes_no_room() {
        let mut s = Space::new(128);
        let p = s.take(0).unwrap().unwrap();
        s.give(p, 0).unwrap();
        assert_eq!(s.take(128).unwrap().unwrap().offset, 0);
        assert_eq!(s.sizes(), [128]);
    }
}
