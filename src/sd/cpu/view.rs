//! F32 tensors with any strides, read by index; dimensions are repeated.

use crate::sd::kernel::Shared;
use ggml_oxide_abi::ggml_tensor;

/// A tensor to read.
pub struct View {
    data: Shared,
    ne: [usize; 4],
    nb: [usize; 4],
}

impl View {
    /// That of a tensor that has elements.
    pub fn of(t: &ggml_tensor) -> Self {
        View { data: Shared::of(t), ne: t.ne.map(|n| n as usize), nb: t.nb }
    }

    fn start(&self, i: [usize; 3]) -> Shared {
        self.data.at((0..3).map(|d| i[d] % self.ne[d + 1] * self.nb[d + 1]).sum())
    }

    /// The elements of a row, when there are `n` that lie side by side.
    ///
    /// # Safety
    /// The tensor has its data, at multiples of 4 bytes.
    pub unsafe fn row(&self, i: [usize; 3], n: usize) -> Option<&[f32]> {
        let flat = self.ne[0] == n && (self.nb[0] == 4 || n == 1);
        // SAFETY: the caller's promise.
        flat.then(|| unsafe { std::slice::from_raw_parts(self.start(i).cast::<f32>(), n) })
    }

    /// One element.
    ///
    /// # Safety
    /// As [`View::row`].
    pub unsafe fn at(&self, i0: usize, i: [usize; 3]) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { self.start(i).at(i0 % self.ne[0] * self.nb[0]).cast::<f32>().read() }
    }

    /// Copies a row of all elements.
    ///
    /// # Safety
    /// As [`View::row`].
    pub unsafe fn copy(&self, i: [usize; 3], to: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.row(i, to.len()) {
                Some(row) => to.copy_from_slice(row),
                None => to.iter_mut().enumerate().for_each(|(i0, x)| *x = self.at(i0, i)),
            }
        }
    }
}
