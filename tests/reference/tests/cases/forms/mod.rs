//! A catalogue of operators: for each form the sources that it takes, and how it is built. The kinds of cases walk over it, so that
//! what was reported of one operator is looked for in all.

mod backward;
mod elementwise;
mod image;
mod matrix;
mod recurrent;
mod rows;

use reference::values::block;
use reference::world::t;
use reference::*;
use std::sync::OnceLock;

/// f32 alone.
pub const S: &[ggml_type] = &[GGML_TYPE_F32];
/// Float formats.
pub const F: &[ggml_type] = &[GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16];
/// f16 and f32, f16 first.
pub const H: &[ggml_type] = &[GGML_TYPE_F16, GGML_TYPE_F32];
/// Formats of indices.
pub const I: &[ggml_type] = &[GGML_TYPE_I32];
/// Formats of indices where both widths are taken.
pub const II: &[ggml_type] = &[GGML_TYPE_I64, GGML_TYPE_I32];
/// Formats that can be copied: plain ones of each size, and blocks.
pub const ANY: &[ggml_type] = &[
    GGML_TYPE_F32,
    GGML_TYPE_F16,
    GGML_TYPE_BF16,
    GGML_TYPE_I8,
    GGML_TYPE_I16,
    GGML_TYPE_I32,
    GGML_TYPE_I64,
    GGML_TYPE_F64,
    GGML_TYPE_Q4_0,
    GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,
    GGML_TYPE_IQ4_NL,
    GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,
];
/// Formats of weights: floats and blocks, of 256 elements among them.
pub const W: &[ggml_type] = &[
    GGML_TYPE_F32,
    GGML_TYPE_F16,
    GGML_TYPE_BF16,
    GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1,
    GGML_TYPE_Q5_0,
    GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K,
    GGML_TYPE_Q3_K,
    GGML_TYPE_Q4_K,
    GGML_TYPE_Q5_K,
    GGML_TYPE_Q6_K,
    GGML_TYPE_IQ4_NL,
    GGML_TYPE_IQ4_XS,
    GGML_TYPE_IQ2_S,
    GGML_TYPE_IQ3_XXS,
    GGML_TYPE_IQ3_S,
    GGML_TYPE_TQ1_0,
    GGML_TYPE_TQ2_0,
    GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,
];

/// What a source's elements are.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbers, by [`Fill`].
    Numbers(Fill),
    /// Indices below a number.
    Index(usize),
    /// Indices below a number, each at most once: these numbers in turn.
    Once(usize, Vec<f64>),
}

/// One source of a form.
#[derive(Clone, Debug)]
pub struct Src {
    /// Formats that it is tried in; the first is the usual one.
    pub types: &'static [ggml_type],
    /// Elements in each dimension.
    pub ne: [usize; 4],
    /// Its elements.
    pub content: Content,
}

impl Src {
    /// How to fill it.
    pub fn fill(&self) -> Fill {
        match &self.content {
            Content::Numbers(fill) => fill.clone(),
            Content::Index(n) => Fill::Whole(0, *n as i64),
            Content::Once(_, list) => Fill::List(list.clone()),
        }
    }
}

/// A builder.
pub type Build = fn(Ctx, &[T]) -> T;

/// One form of an operator.
#[derive(Clone, Debug)]
pub struct Form {
    /// Name of the builder, and what is special.
    pub name: &'static str,
    /// Its sources.
    pub sources: Vec<Src>,
    /// Builds it.
    pub build: Build,
    /// Sources whose dimension 3 is a batch, as the result's is.
    pub batch: Option<Vec<bool>>,
    /// Source whose rows the result's rows depend on one by one.
    pub rows: Option<usize>,
    /// How far results may differ, relative to the largest of the row, where the order of sums depends on the layout. 0: no bit.
    pub near: f64,
    /// The source that the result is written to.
    pub written: Option<usize>,
    /// Source 0 has rows without gaps whatever the layout.
    pub packed: bool,
}

impl Form {
    fn batched(mut self) -> Form {
        self.batch = Some(vec![true; self.sources.len()]);
        self
    }
    fn batched_of(mut self, which: &[bool]) -> Form {
        self.batch = Some(which.to_vec());
        self
    }
    fn by_rows(mut self, of: usize) -> Form {
        self.rows = Some(of);
        self
    }
    fn near(mut self, near: f64) -> Form {
        self.near = near;
        self
    }
    /// The result is source 0.
    fn over(self) -> Form {
        self.into(0)
    }
    fn into(mut self, k: usize) -> Form {
        self.written = Some(k);
        self
    }
    fn packed(mut self) -> Form {
        self.packed = true;
        self
    }

    /// Whether the operator writes to source `k` besides its result: the moments of an optimizer.
    pub fn writes(&self, k: usize) -> bool {
        self.name == "ggml_opt_step_adamw" && (k == 2 || k == 3)
    }

    /// As `near`, for sources of these formats: products of blocks round the other source to 8 bits where it has rows, and keep it
    /// where it has none.
    pub fn near_of(&self, types: &[ggml_type]) -> f64 {
        let blocks = types.first().is_some_and(|&ty| block(ty).0 > 1);
        if blocks && self.near > 0.0 {
            0.03
        } else {
            self.near
        }
    }

    /// Formats of each source in the case of the usual ones but for source `k`.
    pub fn types(&self, k: usize, ty: ggml_type) -> Vec<ggml_type> {
        let usual = self.sources.iter().map(|s| s.types[0]);
        usual.enumerate().map(|(i, usual)| if i == k { ty } else { usual }).collect()
    }

    /// Combinations of formats: the usual one, each source's others, and all sources in one format.
    pub fn combinations(&self) -> Vec<Vec<ggml_type>> {
        let mut all = vec![self.types(0, self.sources.first().map_or(GGML_TYPE_F32, |s| s.types[0]))];
        for (k, s) in self.sources.iter().enumerate() {
            all.extend(s.types[1..].iter().map(|&ty| self.types(k, ty)));
        }
        let lists: Vec<_> = self.sources.iter().filter(|s| s.types.len() > 1).map(|s| s.types).collect();
        if lists.len() > 1 && lists.windows(2).all(|l| l[0].as_ptr() == l[1].as_ptr()) {
            for &ty in &lists[0][1..] {
                all.push(self.sources.iter().map(|s| if s.types.len() > 1 { ty } else { s.types[0] }).collect());
            }
        }
        all.retain(|types| types.iter().zip(&self.sources).all(|(&ty, s)| s.ne[0] % block(ty).0 == 0));
        all
    }
}

fn form(name: &'static str, sources: Vec<Src>, build: Build) -> Form {
    Form { name, sources, build, batch: None, rows: None, near: 0.0, written: None, packed: false }
}

fn num(types: &'static [ggml_type], ne: [usize; 4]) -> Src {
    with(types, ne, Fill::Range(-2.0, 2.0))
}

fn positive(types: &'static [ggml_type], ne: [usize; 4]) -> Src {
    with(types, ne, Fill::Range(0.5, 2.0))
}

fn with(types: &'static [ggml_type], ne: [usize; 4], fill: Fill) -> Src {
    Src { types, ne, content: Content::Numbers(fill) }
}

fn index(types: &'static [ggml_type], ne: [usize; 4], below: usize) -> Src {
    Src { types, ne, content: Content::Index(below) }
}

/// 0, 1, 2 and so on.
fn counting(ne: [usize; 4]) -> Src {
    with(I, ne, Fill::List((0..ne.iter().product::<usize>()).map(|i| i as f64).collect()))
}

/// A mask with some elements of minus infinity, and no row of nothing else.
fn mask(types: &'static [ggml_type], ne: [usize; 4]) -> Src {
    with(types, ne, Fill::List(vec![0.0, -1.0, f64::NEG_INFINITY, -0.5, 0.0]))
}

/// A builder's tensor, with bytes from one element to the next.
fn nb(p: T) -> [usize; 4] {
    t(p).nb
}

/// Bytes from one element to the next in a tensor of the same shape without gaps.
fn strides(p: T) -> [usize; 4] {
    let (unit, size) = block(t(p).r#type);
    let ne = t(p).ne.map(|n| n as usize);
    let row = ne[0] / unit * size;
    [size, row, row * ne[1], row * ne[1] * ne[2]]
}

/// All forms.
pub fn forms() -> &'static [Form] {
    static FORMS: OnceLock<Vec<Form>> = OnceLock::new();
    FORMS.get_or_init(|| {
        let families = [
            elementwise::forms(),
            rows::forms(),
            image::forms(),
            matrix::forms(),
            backward::forms(),
            recurrent::forms(),
        ];
        families.into_iter().flatten().collect()
    })
}
