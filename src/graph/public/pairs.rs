//! Which tensor stands for which. Only addresses: nothing is followed.

use ggml_oxide_abi::ggml_tensor;

/// What is wrong with a list of pairs; pairs by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// This pair has no original.
    NoOriginal(usize),
    /// This pair has no copy.
    NoCopy(usize),
    /// This pair's original has another copy in an earlier pair.
    Again(usize),
    /// This pair's copy stands for another tensor already.
    Shared(usize),
    /// No memory to sort them.
    Memory,
}

/// Originals and their copies, one to one.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    to: &'a [*mut ggml_tensor],
    /// Addresses of originals in order, and the index of each.
    sorted: Vec<(usize, u32)>,
}

impl<'a> Pairs<'a> {
    /// `to[i]` stands for `from[i]`.
    pub fn new(from: &[*mut ggml_tensor], to: &'a [*mut ggml_tensor]) -> Result<Self, Fault> {
        if let Some(i) = from.iter().position(|t| t.is_null()) {
            return Err(Fault::NoOriginal(i));
        }
        if let Some(i) = to.iter().position(|t| t.is_null()) {
            return Err(Fault::NoCopy(i));
        }
        let copies = sorted(to).ok_or(Fault::Memory)?;
        if let Some(i) = again(&copies) {
            return Err(Fault::Shared(i));
        }
        let sorted = sorted(from).ok_or(Fault::Memory)?;
        match again(&sorted) {
            Some(i) => Err(Fault::Again(i)),
            None => Ok(Pairs { to, sorted }),
        }
    }

    /// What stands for `original`.
    pub fn copy_of(&self, original: *const ggml_tensor) -> Option<*mut ggml_tensor> {
        let at = self.sorted.binary_search_by_key(&original.addr(), |&(address, _)| address).ok()?;
        self.to.get(self.sorted[at].1 as usize).copied()
    }
}

fn sorted(tensors: &[*mut ggml_tensor]) -> Option<Vec<(usize, u32)>> {
    let mut list = Vec::new();
    list.try_reserve_exact(tensors.len()).ok()?;
    list.extend(tensors.iter().enumerate().map(|(i, t)| (t.addr(), i as u32)));
    list.sort_unstable();
    Some(list)
}

/// The first pair whose address an earlier pair has.
fn again(sorted: &[(usize, u32)]) -> Option<usize> {
    sorted.windows(2).filter(|w| w[0].0 == w[1].0).map(|w| w[1].1 as usize).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tensors<const N: usize>(addresses: [usize; N]) -> [*mut ggml_tensor; N] {
        addresses.map(std::ptr::without_provenance_mut)
    }

    #[test]
    fn one_to_one_or_refused() {
        let from = tensors([64, 16, 48, 32]);
        let to = tensors([416, 464, 64, 16]);
        let pairs = Pairs::new(&from, &to).unwrap();
        for (f, t) in from.iter().zip(to) {
            assert_eq!(pairs.copy_of(*f), Some(t));
        }
        assert_eq!(pairs.copy_of(tensors([416])[0]), None);
        let fault =
            |from: [usize; 4], to: [usize; 4]| Pairs::new(&tensors(from), &tensors(to)).map(|_| ()).unwrap_err();
        let (f, t) = ([64, 16, 48, 32], [1, 2, 3, 4]);
        assert_eq!(fault([64, 0, 48, 0], t), Fault::NoOriginal(1));
        assert_eq!(fault(f, [1, 2, 0, 4]), Fault::NoCopy(2));
        assert_eq!(fault(f, [4, 3, 3, 4]), Fault::Shared(2), "the first that repeats one");
        assert_eq!(fault([64, 16, 16, 64], t), Fault::Again(2));
        let none = Pairs::new(&[], &[]).unwrap();
        assert_eq!(none.copy_of(from[0]), None);
    }
}
