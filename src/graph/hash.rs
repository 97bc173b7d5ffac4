//! The set of tensors that a graph has seen: open addressing, linear probing from `(address >> 4) % size`. Clients and backends
//! read it in place.

use ggml_oxide_abi::*;

/// Slots of a set with room for `min` tensors: the first prime above a power of two that is not below `min`.
pub fn size_for(min: usize) -> Option<usize> {
    let mut power = if min <= 2 { 1 } else { 1usize << min.ilog2() };
    loop {
        let prime = prime_above(power)?;
        if prime >= min {
            return Some(prime);
        }
        power = power.checked_mul(2)?;
    }
}

fn prime_above(n: usize) -> Option<usize> {
    if n > 1 << 31 {
        return None;
    }
    (n + 1..).find(|&p| p == 2 || p % 2 == 1 && (3..).step_by(2).take_while(|d| d * d <= p).all(|d| p % d != 0))
}

/// Words of a bit set of `n` bits.
pub fn words(n: usize) -> usize {
    n.div_ceil(32)
}

/// Where a tensor is, or would go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is there.
    Slot(usize),
    /// It is not there and would go here.
    Free(usize),
    /// It is not there and there is no room.
    Full,
}

/// Looks for `key`.
///
/// # Safety
/// The set's arrays have `size` slots, or are NULL.
pub unsafe fn find(set: &ggml_hash_set, key: *const ggml_tensor) -> Found {
    if set.size == 0 || set.used.is_null() || set.keys.is_null() {
        return Found::Full;
    }
    let start = (key.addr() >> 4) % set.size;
    let mut i = start;
    loop {
        // SAFETY: `i` is below `size`; taken slots are defined.
        unsafe {
            if *set.used.add(i / 32) >> (i % 32) & 1 == 0 {
                return Found::Free(i);
            }
            if std::ptr::eq(*set.keys.add(i), key) {
                return Found::Slot(i);
            }
        }
        i += 1;
        if i == set.size {
            i = 0;
        }
        if i == start {
            return Found::Full;
        }
    }
}

/// Takes slot `i`, which [`find`] gave as free.
///
/// # Safety
/// As [`find`], for the same set.
pub unsafe fn take(set: &mut ggml_hash_set, i: usize, key: *mut ggml_tensor) {
    // SAFETY: `i` is below `size`.
    unsafe {
        *set.used.add(i / 32) |= 1 << (i % 32);
        *set.keys.add(i) = key;
    }
}

/// Empties the set.
///
/// # Safety
/// As [`find`].
pub unsafe fn clear(set: &mut ggml_hash_set) {
    if !set.used.is_null() {
        // SAFETY: the bit set has one bit for each slot.
        unsafe { set.used.write_bytes(0, words(set.size)) }
    }
}

/// A set of its own memory with room for `min` tensors; all zero when there is no memory.
pub fn new_set(min: usize) -> ggml_hash_set {
    let none = ggml_hash_set { size: 0, used: std::ptr::null_mut(), keys: std::ptr::null_mut() };
    let Some(size) = size_for(min) else { return none };
    // SAFETY: plain allocation; the bits are zeroed, keys without a bit are never read.
    unsafe {
        let used = libc::calloc(words(size), 4).cast::<ggml_bitset_t>();
        let keys = libc::calloc(size, size_of::<*mut ggml_tensor>()).cast::<*mut ggml_tensor>();
        if used.is_null() || keys.is_null() {
            libc::free(used.cast());
            libc::free(keys.cast());
            return none;
        }
        ggml_hash_set { size, used, keys }
    }
}

/// Frees what [`new_set`] made.
///
/// # Safety
/// The set came from [`new_set`] and is used no more.
pub unsafe fn free_set(set: &mut ggml_hash_set) {
    // SAFETY: the caller's promise.
    unsafe {
        libc::free(set.used.cast());
        libc::free(set.keys.cast());
    }
    *set = ggml_hash_set { size: 0, used: std::ptr::null_mut(), keys: std::ptr::null_mut() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_primes_above_powers_of_two() {
        let known = [
            (0, 2),
            (2, 2),
            (3, 3),
            (4, 5),
            (6, 11),
            (12, 17),
            (4096, 4099),
            (4100, 8209),
            (16384, 16411),
            (131072, 131101),
        ];
        for (min, size) in known {
            assert_eq!(size_for(min), Some(size), "{min}");
        }
        assert_eq!(size_for(usize::MAX), None);
    }

    #[test]
    fn a_full_set_says_so() {
        let mut set = new_set(3);
        let key = |i: usize| std::ptr::without_provenance_mut::<ggml_tensor>(i * 16);
        // SAFETY: the set is whole; keys are never followed.
        unsafe {
            for i in 1..=3 {
                let Found::Free(at) = find(&set, key(i)) else { panic!("no room for {i}") };
                take(&mut set, at, key(i));
                assert_eq!(find(&set, key(i)), Found::Slot(at));
            }
            assert_eq!(find(&set, key(4)), Found::Full);
            clear(&mut set);
            assert!(matches!(find(&set, key(1)), Found::Free(_)));
            free_set(&mut set);
            assert_eq!(find(&set, key(1)), Found::Full);
        }
    }
}
