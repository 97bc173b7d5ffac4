//! Lists as long as a graph: where there is no memory for one, that is an error and not the end of the process.

use crate::error::Error;
use std::collections::TryReserveError;

/// An empty list with room for `n` items.
pub fn list<T>(n: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(n)?;
    Ok(list)
}

/// `n` times `value`.
pub fn filled<T: Clone>(n: usize, value: T) -> Result<Vec<T>, TryReserveError> {
    let mut list = list(n)?;
    list.resize(n, value);
    Ok(list)
}

/// What `items` gives; they know how many they are.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, TryReserveError> {
    let mut list = list(items.len())?;
    list.extend(items);
    Ok(list)
}

/// A copy of `items`.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, TryReserveError> {
    collected(items.iter().copied())
}

/// One more item.
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), TryReserveError> {
    if list.len() == list.capacity() {
        list.try_reserve(1)?;
    }
    list.push(item);
    Ok(())
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Error::memory("there is no memory to plan the graph")
    }
}
