//! Numbers for tensors: a map from addresses to 0, 1, 2 ... in order of appearance, kept between graphs so that its memory is.

use std::collections::TryReserveError;

/// Addresses and their numbers.
#[derive(Default)]
pub struct Index {
    /// Slots: number plus one, or 0. A power of two of them, at most half taken.
    slots: Vec<u32>,
    keys: Vec<usize>,
}

impl Index {
    /// Forgets all; the memory stays.
    pub fn forget(&mut self) {
        if !self.keys.is_empty() {
            self.keys.clear();
            self.slots.fill(0);
        }
    }

    /// Forgets all and makes room for about `n` addresses.
    pub fn clear(&mut self, n: usize) {
        if self.try_clear(n).is_err() {
            no_memory();
        }
    }

    /// As [`Index::clear`], where there may be no memory.
    pub fn try_clear(&mut self, n: usize) -> Result<(), TryReserveError> {
        let want = (n.max(16) * 2).next_power_of_two();
        self.keys.clear();
        self.keys.try_reserve(n)?;
        if self.slots.len() < want || n > 0 && self.slots.len() > want * 8 {
            self.slots = zeros(want)?;
        } else {
            self.slots.fill(0);
        }
        Ok(())
    }

    /// Addresses by number.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// Makes room for `more` addresses, so that adding them cannot fail.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let want = self.keys.len() + more;
        if want * 2 > self.slots.len() || want > self.keys.capacity() {
            self.grow(want)?;
        }
        Ok(())
    }

    /// The number of `key`, and whether it is new. Where [`Index::reserve`] made no room and there is no memory, the process ends.
    #[inline]
    pub fn add(&mut self, key: usize) -> (u32, bool) {
        let mut at = 0;
        if !self.slots.is_empty() {
            at = self.probe(key);
            if let Some(number) = self.slots[at].checked_sub(1) {
                return (number, false);
            }
        }
        let n = self.keys.len() + 1;
        if n > self.keys.capacity() || n * 2 > self.slots.len() {
            if self.grow(n).is_err() {
                no_memory();
            }
            at = self.probe(key);
        }
        self.keys.push(key);
        self.slots[at] = n as u32;
        (n as u32 - 1, true)
    }

    /// As [`Index::add`], where there may be no memory.
    #[inline]
    pub fn try_add(&mut self, key: usize) -> Result<(u32, bool), TryReserveError> {
        self.reserve(1)?;
        Ok(self.add(key))
    }

    /// The number of `key`, if it has one.
    #[inline]
    pub fn get(&self, key: usize) -> Option<u32> {
        if self.keys.is_empty() {
            return None;
        }
        self.slots[self.probe(key)].checked_sub(1)
    }

    /// The slot of `key`, or the free one where it would go.
    #[inline]
    fn probe(&self, key: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = place(key) & mask;
        loop {
            match self.slots[at] {
                0 => return at,
                n if self.keys[n as usize - 1] == key => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self, want: usize) -> Result<(), TryReserveError> {
        self.keys.try_reserve(want - self.keys.len())?;
        if want * 2 > self.slots.len() {
            self.slots = zeros((want * 2).next_power_of_two().max(32))?;
            for n in 0..self.keys.len() {
                let at = self.probe(self.keys[n]);
                self.slots[at] = n as u32 + 1;
            }
        }
        Ok(())
    }
}

#[cold]
fn no_memory() -> ! {
    std::alloc::handle_alloc_error(std::alloc::Layout::new::<u32>())
}

fn zeros(n: usize) -> Result<Vec<u32>, TryReserveError> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(n)?;
    slots.resize(n, 0);
    Ok(slots)
}

/// Where an address goes. Tensors lie in arenas, one behind the other, and are asked for in that order: neighbours stay neighbours, for
/// the caches' sake, and what the lower bits of equal distances do not tell apart the higher ones do.
#[inline]
fn place(key: usize) -> usize {
    let h = key >> 4;
    h ^ h >> 11 ^ h >> 22
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_distance_between_tensors_makes_long_searches() {
        for distance in [16, 48, 336, 368, 432, 464, 512, 1024, 4096, 1 << 16, 1 << 20] {
            for start in [0x7f12_3456_7010usize, 0x10] {
                let mut index = Index::default();
                let n = 5000;
                index.clear(n);
                (0..n).for_each(|i| assert!(index.add(start + i * distance).1));
                let mask = index.slots.len() - 1;
                let steps = |at: usize| {
                    let n = index.slots[at] as usize;
                    if n == 0 {
                        0
                    } else {
                        at.wrapping_sub(place(index.keys[n - 1])) & mask
                    }
                };
                let steps: usize = (0..index.slots.len()).map(steps).sum();
                assert!(steps <= 4 * n, "distance {distance}: {steps} steps for {n} addresses");
            }
        }
    }

    #[test]
    fn numbers_in_order_of_appearance() {
        let mut index = Index::default();
        assert_eq!(index.get(400), None);
        for round in 0..3 {
            index.clear(round * 10);
            for i in 0..1000u32 {
                assert_eq!(index.add(i as usize * 400 + 400), (i, true));
            }
            for i in 0..1000u32 {
                assert_eq!(index.try_add(i as usize * 400 + 400), Ok((i, false)));
                assert_eq!(index.get(i as usize * 400 + 400), Some(i));
            }
            assert_eq!(index.get(8), None);
            assert_eq!(index.keys().len(), 1000);
        }
        index.forget();
        assert_eq!((index.get(400), index.add(800)), (None, (0, true)));
    }
}
