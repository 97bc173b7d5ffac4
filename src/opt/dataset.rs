//! Data and labels, cut into shards that are moved as a whole.

use super::nodes;
use super::random::Twister;
use crate::alloc::{room, whole};
use crate::backend::{host, tensor_data, Buffer};
use crate::error::Error;
use crate::tensor::{self, show, Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// A dataset. Its tensors lie in the host's memory.
pub struct Dataset {
    // holds the tensors
    _ctx: Box<Context>,
    buffer: Option<Buffer>,
    data: *mut ggml_tensor,
    labels: *mut ggml_tensor,
    n: i64,
    per_shard: i64,
    /// Bytes of a shard.
    data_bytes: usize,
    labels_bytes: usize,
    /// Which shard lies where.
    order: Vec<u32>,
}

/// What a dataset is made of.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Format of data, and elements of a datapoint.
    pub data: (ggml_type, i64),
    /// Format of labels, and elements of a label; 0: no labels.
    pub labels: (ggml_type, i64),
    /// Datapoints.
    pub n: i64,
    /// Datapoints of a shard.
    pub per_shard: i64,
}

impl Dataset {
    /// A dataset with its data not set.
    pub fn new(s: Shape) -> Result<Self, Error> {
        for (what, n, least) in [
            ("ne_datapoint", s.data.1, 1),
            ("ne_label", s.labels.1, 0),
            ("ndata", s.n, 1),
            ("ndata_shard", s.per_shard, 1),
        ] {
            if n < least {
                return Err(Error::argument(format!("{what} {n} must be at least {least}")));
            }
        }
        let n_shards = s.n / s.per_shard;
        if n_shards == 0 {
            return Err(Error::argument(format!("{} datapoints do not fill one shard of {}", s.n, s.per_shard)));
        }
        let n_shards =
            u32::try_from(n_shards).map_err(|_| Error::argument(format!("{n_shards} shards are too many")))?;
        let bytes = |(ty, ne): (ggml_type, i64)| {
            let row = shape::checked_row_size(ty, ne);
            let shard = row.and_then(|row| row.checked_mul(usize::try_from(s.per_shard).ok()?));
            shard.ok_or_else(|| Error::shape(format!("{ne} elements of format {} are no row, or too many", ty.0)))
        };
        let (data_bytes, labels_bytes) = (bytes(s.data)?, if s.labels.1 > 0 { bytes(s.labels)? } else { 0 });
        let mut order = room::list(n_shards as usize)?;
        order.extend(0..n_shards);
        // SAFETY: a block of its own.
        let mut ctx = unsafe { Context::new(2 * TENSOR_OVERHEAD, std::ptr::null_mut(), true) }?;
        // SAFETY: no sources.
        let mut make =
            |(ty, ne): (ggml_type, i64)| unsafe { nodes::make(&mut ctx, tensor::new::leaf(ty, &[ne, s.n]), &[]) };
        let data = make(s.data)?;
        let labels = if s.labels.1 > 0 { make(s.labels)? } else { std::ptr::null_mut() };
        let mut tensors = whole::tensors_of(&ctx)?;
        // SAFETY: the context's tensors, live as long as it is.
        let buffer = unsafe { whole::alloc(&mut tensors, host::buffer_type_cpu()) }?;
        Ok(Dataset { _ctx: ctx, buffer, data, labels, n: s.n, per_shard: s.per_shard, data_bytes, labels_bytes, order })
    }

    /// Datapoints.
    pub fn n(&self) -> i64 {
        self.n
    }

    /// [ne_datapoint, n].
    pub fn data(&self) -> *mut ggml_tensor {
        self.data
    }

    /// [ne_label, n], or NULL.
    pub fn labels(&self) -> *mut ggml_tensor {
        self.labels
    }

    /// Elements of a datapoint.
    pub fn ne_datapoint(&self) -> i64 {
        // SAFETY: the dataset's own tensor.
        unsafe { (*self.data).ne[0] }
    }

    /// Shuffles the first `n` datapoints, all if `n` is negative.
    pub fn shuffle(&mut self, random: &mut Twister, n: i64) -> Result<(), Error> {
        if n > self.n || n > 0 && n % self.per_shard != 0 {
            return Err(Error::argument(format!(
                "{n} datapoints cannot be shuffled: there are {} in shards of {}",
                self.n, self.per_shard
            )));
        }
        let shards = if n < 0 { self.order.len() } else { (n / self.per_shard) as usize };
        random.shuffle(&mut self.order[..shards]);
        Ok(())
    }

    /// The shards of batch `i` of `bytes` bytes of data.
    fn batch(&self, bytes: usize, i: i64) -> Result<&[u32], Error> {
        if bytes == 0 || !bytes.is_multiple_of(self.data_bytes) {
            return Err(Error::argument(format!("{bytes} bytes are no whole number of shards of {}", self.data_bytes)));
        }
        let n = bytes / self.data_bytes;
        let first = usize::try_from(i).ok().and_then(|i| i.checked_mul(n));
        let range = first.and_then(|first| self.order.get(first..first.checked_add(n)?));
        range.ok_or_else(|| Error::argument(format!("there is no batch {i} of {n} of the {} shards", self.order.len())))
    }

    fn check_labels(&self, given: bool) -> Result<(), Error> {
        match (given, self.labels.is_null()) {
            (true, true) => Err(Error::argument("the dataset has no labels, and there is a place for them")),
            (false, false) => Err(Error::argument("the dataset has labels, and there is no place for them")),
            _ => Ok(()),
        }
    }

    /// Where shard `i` lies in tensor `t`.
    fn at(&self, t: *mut ggml_tensor, bytes: usize, i: u32) -> *const u8 {
        // SAFETY: the dataset's own tensor; the order has shards that lie inside it.
        unsafe { (*t).data.cast::<u8>().add(i as usize * bytes) }
    }

    /// Copies batch `i` to tensors, which decide its size. `labels`: NULL when the dataset has none.
    ///
    /// # Safety
    /// The tensors are NULL or live.
    pub unsafe fn get(
        &self,
        call: &str,
        data: *mut ggml_tensor,
        labels: *mut ggml_tensor,
        i: i64,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let (to_data, to_labels) = unsafe { (data.as_ref(), labels.as_ref()) };
        let to_data = to_data.ok_or_else(|| Error::null("batch of data"))?;
        self.check_labels(to_labels.is_some())?;
        let shards = self.batch(shape::nbytes(to_data), i)?;
        let targets = [(Some(to_data), self.data, self.data_bytes), (to_labels, self.labels, self.labels_bytes)];
        for (to, from, bytes) in targets.iter() {
            let Some(to) = to else { continue };
            // SAFETY: the dataset's own tensor.
            let from = unsafe { &**from };
            if !shape::is_contiguous(to) || to.r#type != from.r#type {
                let text =
                    format!("{} must be contiguous, of the format of {}", show("batch", to), show("dataset", from));
                return Err(Error::shape(text));
            }
            if shape::nbytes(to) != shards.len() * bytes {
                let text = format!("{} must have {} shards of {bytes} bytes", show("batch", to), shards.len());
                return Err(Error::shape(text));
            }
            if tensor_data::buffer_of(to).is_none() {
                let text = format!("{} has no buffer", show("batch", to));
                return Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text));
            }
        }
        for (at, &shard) in shards.iter().enumerate() {
            let from = self.at(self.data, self.data_bytes, shard);
            let rows = |bytes| tensor_data::Rows::range(at * bytes, bytes);
            // SAFETY: the sizes were checked.
            unsafe {
                tensor_data::set(call, data, from.cast(), rows(self.data_bytes));
                if !labels.is_null() {
                    let from = self.at(self.labels, self.labels_bytes, shard);
                    tensor_data::set(call, labels, from.cast(), rows(self.labels_bytes));
                }
            }
        }
        Ok(())
    }

    /// As [`Dataset::get`] to memory of the host.
    ///
    /// # Safety
    /// `data` has room for `bytes` bytes, `labels` is NULL or has room for as many labels.
    pub unsafe fn get_host(&self, data: *mut u8, bytes: usize, labels: *mut u8, i: i64) -> Result<(), Error> {
        if data.is_null() {
            return Err(Error::null("batch of data"));
        }
        self.check_labels(!labels.is_null())?;
        for (at, &shard) in self.batch(bytes, i)?.iter().enumerate() {
            // SAFETY: as many shards as the caller has room for.
            unsafe {
                let (from, n) = (self.at(self.data, self.data_bytes, shard), self.data_bytes);
                data.add(at * n).copy_from(from, n);
                if !labels.is_null() {
                    let (from, n) = (self.at(self.labels, self.labels_bytes, shard), self.labels_bytes);
                    labels.add(at * n).copy_from(from, n);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // SAFETY: the dataset's own; its tensors go with it.
            unsafe { buffer.free() }
        }
    }
}
