//! How a tensor is divided over devices, and what views and other shapes make of it. Numbers only.

use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// How a tensor lies on `n` devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// All of it on each.
    Mirrored,
    /// Cut along an axis.
    Along(Cut),
}

/// A tensor cut along an axis: pieces in the order of the whole tensor. A device keeps its own one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Dimension.
    pub axis: usize,
    /// Device and length (elements of the dimension) of each piece; none is empty, and neighbours are of different devices.
    pub pieces: Vec<(usize, i64)>,
}

impl Cut {
    /// With `pieces` put together where they belong to one device.
    pub fn new(axis: usize, pieces: impl IntoIterator<Item = (usize, i64)>) -> Cut {
        let mut all: Vec<(usize, i64)> = Vec::new();
        for (device, n) in pieces.into_iter().filter(|p| p.1 > 0) {
            match all.last_mut() {
                Some((last, length)) if *last == device => *length += n,
                _ => all.push((device, n)),
            }
        }
        Cut { axis, pieces: all }
    }

    /// Elements of the dimension on a device.
    pub fn on(&self, device: usize) -> i64 {
        self.pieces.iter().filter(|p| p.0 == device).map(|p| p.1).sum()
    }

    /// Elements of the dimension.
    pub fn total(&self) -> i64 {
        self.pieces.iter().map(|p| p.1).sum()
    }

    /// The same cut of another dimension, each piece `times / by` as long; `None` where that is not whole.
    pub fn scaled(&self, axis: usize, times: i64, by: i64) -> Option<Cut> {
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for &(device, n) in &self.pieces {
            let n = n.checked_mul(times)?;
            if by == 0 || n % by != 0 {
                return None;
            }
            pieces.push((device, n / by));
        }
        Some(Cut::new(axis, pieces))
    }

    /// The part from `start`, `length` long, as a cut of dimension `axis` in units of `unit`, going round at the end.
    fn part(&self, axis: usize, start: i64, length: i64, unit: i64) -> Option<Cut> {
        let mut pieces = Vec::new();
        let (mut skip, mut left) = (start, length.checked_mul(unit)?);
        if self.pieces.is_empty() {
            return None;
        }
        for &(device, n) in self.pieces.iter().cycle() {
            if left == 0 {
                break;
            }
            let take = (n - skip.min(n)).min(left);
            skip -= skip.min(n);
            if take % unit != 0 {
                return None;
            }
            left -= take;
            pieces.push((device, take / unit));
        }
        Some(Cut::new(axis, pieces))
    }

    /// Elements that a device has before position `at` of the whole dimension.
    fn before(&self, device: usize, at: i64) -> i64 {
        let mut rest = at;
        let mut sum = 0;
        for &(owner, n) in &self.pieces {
            let take = n.min(rest);
            rest -= take;
            sum += if owner == device { take } else { 0 };
        }
        sum
    }

    /// What becomes of it when the elements, in their order, get shape `to`; `None` where a device would have a broken row.
    pub fn reshaped(&self, from: &[i64; GGML_MAX_DIMS], to: &[i64; GGML_MAX_DIMS]) -> Option<Cut> {
        let inner: i64 = from[..self.axis].iter().product();
        let chunk = inner.checked_mul(from[self.axis])?;
        (0..GGML_MAX_DIMS).find_map(|axis| {
            let unit: i64 = to[..axis].iter().product();
            let length = unit.checked_mul(to[axis])?;
            if chunk == 0 || unit == 0 || length % chunk != 0 {
                return None;
            }
            let once = self.scaled(axis, inner, unit)?;
            let times = usize::try_from(length / chunk).ok()?;
            Some(Cut::new(axis, once.pieces.iter().copied().cycle().take(once.pieces.len() * times)))
        })
    }
}

/// One device's part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Shape.
    pub ne: [i64; GGML_MAX_DIMS],
    /// Strides, bytes.
    pub nb: [usize; GGML_MAX_DIMS],
    /// Bytes from the start of the storage's slice.
    pub offset: usize,
}

/// A device's part of a tensor that lies in storage of its own, one element behind the other.
pub fn slice(t: &ggml_tensor, split: &Split, device: usize) -> Option<Slice> {
    let mut ne = t.ne;
    match split {
        Split::Along(cut) => ne[cut.axis] = cut.on(device),
        _ => return Some(Slice { ne, nb: t.nb, offset: 0 }),
    }
    let nb = shape::contiguous_strides(t.r#type, &ne)?;
    Some(Slice { ne, nb, offset: 0 })
}

/// How a view of `root` is divided, when `root` is cut so; and the parts of it. `Err`: which rule it breaks.
pub fn view(root: &ggml_tensor, cut: &Cut, t: &ggml_tensor, devices: usize) -> Result<(Cut, Vec<Slice>), &'static str> {
    const CROSSES: &str = "a view across the pieces of a tensor that is divided over devices";
    if !shape::is_contiguous(root) {
        return Err("a tensor that is divided over devices must lie without gaps");
    }
    // Bytes of one step along the cut dimension, and of all of it.
    let step = if cut.axis == 0 { shape::type_size(root.r#type) } else { root.nb[cut.axis] };
    let per_step = if cut.axis == 0 { shape::blck_size(root.r#type) as i64 } else { 1 };
    let bytes = cut.scaled(0, step as i64, per_step).ok_or("a piece ends within a block of its format")?;
    let chunk = bytes.total() as usize;
    if chunk == 0 || step == 0 || shape::is_empty(t) {
        return Err("a view of nothing");
    }
    let size = shape::type_size(t.r#type);
    let block = shape::blck_size(t.r#type).max(1) as i64;
    // Steps of the view's dimensions, in elements and in bytes.
    let steps = |d: usize| if d == 0 { (t.ne[0] / block).max(1) } else { t.ne[d] };
    let stride = |d: usize| t.nb[d];
    let extent = |d: usize| (steps(d) as usize - 1) * stride(d);
    let at = t.view_offs % chunk;
    // The dimension that goes along the cut: the one of the longest stride below a chunk among those that leave a step.
    let moving = (0..GGML_MAX_DIMS).filter(|&d| steps(d) > 1 && stride(d) < chunk && extent(d) + size > step);
    let along = moving.max_by_key(|&d| stride(d));
    let Some(axis) = along.or_else(|| (0..GGML_MAX_DIMS).rev().find(|&d| t.ne[d] == 1)) else { return Err(CROSSES) };
    let unit = match along {
        Some(d) => stride(d),
        // One step at most: the view lies in the piece of one device.
        None => step,
    };
    let within = at % unit;
    let mut reach = within + size;
    for d in (0..GGML_MAX_DIMS).filter(|&d| d != axis && steps(d) > 1) {
        if stride(d) < unit {
            reach += extent(d);
        } else if stride(d) % chunk != 0 {
            return Err(CROSSES);
        }
    }
    if reach > unit {
        return Err(CROSSES);
    }
    let count = if along.is_some() { steps(axis) } else { 1 };
    // A view along dimension 0 of blocks counts in blocks.
    let part = bytes.part(axis, (at - within) as i64, count, unit as i64).ok_or(CROSSES)?;
    let outer = (0..GGML_MAX_DIMS).any(|d| d != axis && steps(d) > 1 && stride(d) >= chunk);
    // Beside others further out it goes round whole chunks only.
    let end = (at - within) + count as usize * unit;
    if outer && end > chunk && (at != within || !end.is_multiple_of(chunk)) {
        return Err(CROSSES);
    }
    let result = if axis == 0 { part.scaled(0, block, 1).ok_or(CROSSES)? } else { part };
    let slices = (0..devices).map(|device| {
        let own = bytes.on(device) as usize;
        let mut slice = Slice { ne: t.ne, nb: t.nb, offset: 0 };
        slice.ne[axis] = result.on(device);
        for d in (0..GGML_MAX_DIMS).filter(|&d| stride(d) >= chunk && stride(d) % chunk == 0) {
            slice.nb[d] = t.nb[d] / chunk * own;
        }
        let start = bytes.before(device, (at - within) as i64) as usize;
        slice.offset = t.view_offs / chunk * own + start + within;
        slice
    });
    let slices = slices.collect();
    Ok((result, slices))
}
