//! A node as kernels read it: metadata, and memory with strides.

use ggml_oxide_abi::*;

/// Bit of `ggml_tensor.flags`: the builder was given impossible arguments.
pub const FLAG_POISONED: i32 = 1 << 30;
/// Where a poisoned tensor keeps the address of its zero-terminated text: bytes 56 to 63 of the parameters, as an index of i32.
pub const POISON_TEXT: usize = 14;

/// A node that runs: its metadata was checked by the executor, its memory and that of its sources is there.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// The result.
    pub dst: &'a ggml_tensor,
}

// SAFETY: kernels read the metadata only, and write the memory it points to in parts that the threads agree on.
unsafe impl Sync for Node<'_> {}
// SAFETY: as above.
unsafe impl Send for Node<'_> {}

impl<'a> Node<'a> {
    /// Source `i`, or `None`.
    pub fn src_opt(&self, i: usize) -> Option<&'a ggml_tensor> {
        src(self.dst, i).ok()
    }

    /// View of the result.
    pub fn out(&self) -> View {
        View::of(self.dst)
    }

    /// View of source `i`; of nothing (zero elements) when there is none.
    pub fn arg(&self, i: usize) -> View {
        self.src_opt(i).map_or(View::NONE, View::of)
    }

    /// Parameter `i` as an integer.
    pub fn i32(&self, i: usize) -> i32 {
        self.dst.op_params[i]
    }

    /// Parameter `i` as a float.
    pub fn f32(&self, i: usize) -> f32 {
        f32::from_bits(self.dst.op_params[i] as u32)
    }
}

/// Source `i` of `op`; `Err` with the rule when it is missing.
pub fn src(op: &ggml_tensor, i: usize) -> Result<&ggml_tensor, &'static str> {
    // SAFETY: a source is NULL or a tensor that lives as long as the node (contract of every graph).
    unsafe { op.src[i].as_ref() }.ok_or("a source is missing")
}

/// Memory with a shape. Dimensions low to high, strides in bytes. Copies freely: who writes where is for the kernel to settle.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Format of the elements.
    pub ty: ggml_type,
    /// Elements in each dimension.
    pub ne: [usize; 4],
    /// Bytes from one element (dimension 0: from one block) to the next.
    pub nb: [usize; 4],
    /// First element.
    pub data: *mut u8,
}

// SAFETY: an address is a number; the blocks that use it say why they may.
unsafe impl Sync for View {}
// SAFETY: as above.
unsafe impl Send for View {}

impl View {
    /// No elements.
    pub const NONE: View = View { ty: GGML_TYPE_F32, ne: [0; 4], nb: [0; 4], data: std::ptr::null_mut() };

    /// The memory of a tensor whose metadata was checked (no negative dimension).
    pub fn of(t: &ggml_tensor) -> View {
        View { ty: t.r#type, ne: t.ne.map(|n| n.max(0) as usize), nb: t.nb, data: t.data.cast() }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.ne.iter().product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.ne.contains(&0)
    }

    /// Rows: the product of dimensions 1 to 3.
    pub fn nrows(&self) -> usize {
        self.ne[1] * self.ne[2] * self.ne[3]
    }

    /// Dimensions 1 to 3 of row number `row`, dimension 1 fastest.
    pub fn unravel(&self, row: usize) -> [usize; 3] {
        let (i1, rest) = (row % self.ne[1], row / self.ne[1]);
        [i1, rest % self.ne[2], rest / self.ne[2]]
    }

    /// Address of the first element of a row.
    pub fn row(&self, [i1, i2, i3]: [usize; 3]) -> *mut u8 {
        self.data.wrapping_add(i1 * self.nb[1] + i2 * self.nb[2] + i3 * self.nb[3])
    }

    /// Address of an element (formats with one element per block).
    pub fn at(&self, i0: usize, i: [usize; 3]) -> *mut u8 {
        self.row(i).wrapping_add(i0 * self.nb[0])
    }
}
