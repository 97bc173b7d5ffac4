//! What becomes of every byte. Memory is a list of marks; computing a node mixes the marks that it reads and puts new ones where it
//! writes. Nothing here knows the rules of fusion.

use super::draw::*;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Bytes that share a mark: all element sizes of the drawn graphs are multiples of it.
const CELL: usize = 2;
const POISON: u64 = 0xdead_dead_dead_dead;

/// The memory.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::ext) struct World {
    cells: Vec<u64>,
    /// Owners that do not lie where the drawing puts them, and where.
    elsewhere: Vec<(*mut ggml_tensor, usize)>,
}

impl World {
    pub fn new(d: &Drawn) -> Self {
        let cells = (0..d.bytes / CELL).map(|i| mix(i as u64 + 1)).collect();
        World { cells, elsewhere: Vec::new() }
    }

    /// The same with spoilt memory of their own for the owners among `nodes`.
    fn with_own(&self, nodes: &[*mut ggml_tensor]) -> World {
        let mut world = self.clone();
        for &t in nodes.iter().filter(|&&t| root(t) == t) {
            world.elsewhere.push((t, world.cells.len() * CELL));
            world.cells.resize(world.cells.len() + extent(t).1.div_ceil(CELL), POISON);
        }
        world
    }

    fn home(&self, d: &Drawn, owner: *mut ggml_tensor) -> usize {
        let elsewhere = self.elsewhere.iter().find(|(t, _)| *t == owner);
        elsewhere.map_or_else(|| d.info(owner).offset, |(_, at)| *at)
    }

    /// Cells of `t` whose storage starts at byte `home`, element by element.
    fn each(home: usize, t: *mut ggml_tensor, mut f: impl FnMut(usize)) {
        let at = home + extent(t).0;
        // SAFETY: a tensor of the drawn graph.
        let t = unsafe { &*t };
        let size = shape::type_size(t.r#type) / CELL;
        for i3 in 0..t.ne[3] as usize {
            for i2 in 0..t.ne[2] as usize {
                for i1 in 0..t.ne[1] as usize {
                    for i0 in 0..t.ne[0] as usize {
                        let byte = at + i0 * t.nb[0] + i1 * t.nb[1] + i2 * t.nb[2] + i3 * t.nb[3];
                        (0..size).for_each(|c| f(byte / CELL + c));
                    }
                }
            }
        }
    }

    /// The marks of `t`, mixed.
    pub fn look(&self, d: &Drawn, t: *mut ggml_tensor) -> u64 {
        let mut hash = 7;
        World::each(self.home(d, root(t)), t, |cell| {
            hash = (hash ^ self.cells[cell]).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        hash
    }

    fn poison(&mut self, d: &Drawn, t: *mut ggml_tensor) {
        World::each(self.home(d, root(t)), t, |cell| self.cells[cell] = POISON);
    }

    /// Computes `t`: the mix of what it read, `None` for nodes that do nothing.
    pub fn run(&mut self, d: &Drawn, t: *mut ggml_tensor) -> Option<u64> {
        // SAFETY: a tensor of the drawn graph.
        let (op, flags) = unsafe { ((*t).op, (*t).flags) };
        let idle = matches!(d.info(t).kind, Kind::View | Kind::Leaf | Kind::LooseView);
        if idle || flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
            return None;
        }
        let read = if op == GGML_OP_CPY { 1 } else { GGML_MAX_SRC };
        let seen = sources(t).take(read).fold(op.0 as u64, |hash, src| mix(hash ^ self.look(d, src)));
        // a node that writes part of its result leaves the rest as it is
        let partly = matches!(op, GGML_OP_SET | GGML_OP_ACC | GGML_OP_SET_ROWS) && root(t) != t;
        let seen = if partly { mix(seen ^ self.look(d, t)) } else { seen };
        let mut n = 0;
        World::each(self.home(d, root(t)), t, |cell| {
            n += 1;
            self.cells[cell] = mix(seen ^ n << 48);
        });
        Some(seen)
    }
}

/// The graph as it runs node by node.
pub(in crate::ext) struct Plain {
    /// By node: what it read.
    seen: Vec<Option<u64>>,
    /// The memory after each node.
    after: Vec<World>,
    start: World,
}

pub(in crate::ext) fn plain(d: &Drawn, nodes: &[*mut ggml_tensor]) -> Plain {
    let start = World::new(d);
    let mut world = start.clone();
    let (mut seen, mut after) = (Vec::new(), Vec::new());
    for &t in nodes {
        seen.push(world.run(d, t));
        after.push(world.clone());
    }
    Plain { seen, after, start }
}

impl Plain {
    fn end(&self) -> &World {
        self.after.last().unwrap_or(&self.start)
    }

    /// Whether the order `nodes` of the nodes `old` shows nobody anything else.
    pub fn same_in_order(&self, d: &Drawn, old: &[*mut ggml_tensor], nodes: &[*mut ggml_tensor]) -> bool {
        let mut world = self.start.clone();
        let seen: Vec<_> = nodes.iter().map(|&t| (t, world.run(d, t))).collect();
        world == *self.end() && old.iter().zip(&self.seen).all(|pair| seen.contains(&(*pair.0, *pair.1)))
    }

    /// What somebody outside the nodes `first..=last` can tell when they are replaced by one step that reads what it needs, computes in
    /// memory of its own and puts the last one's result where that belongs; `None`: nothing.
    pub fn difference(&self, d: &Drawn, first: usize, last: usize) -> Option<&'static str> {
        let (inner, result) = (&d.nodes[first..last], d.nodes[last]);
        let gone: Vec<*mut ggml_tensor> =
            inner.iter().copied().filter(|&t| root(t) == t && t != root(result)).collect();
        let mut world = self.start.clone();
        for &t in gone.iter().filter(|&&t| !d.info(t).allocated) {
            world.poison(d, t);
        }
        for (i, &t) in d.nodes.iter().enumerate() {
            if (first..=last).contains(&i) {
                if i < last && d.info(t).kind == Kind::Callback {
                    return Some("a callback is not called");
                }
                if i == last {
                    let mut own = world.with_own(inner);
                    for (k, &t) in d.nodes[first..=last].iter().enumerate() {
                        // the step computes all of it, marked or not
                        let seen = own.run(d, t);
                        if seen != self.seen[first + k] {
                            return Some("a node of the match reads something else");
                        }
                        // SAFETY: a tensor of the drawn graph.
                        if seen.is_none() && unsafe { (*t).flags } & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
                            return Some("a node is computed that was not to be");
                        }
                    }
                    let (mut marks, home) = (Vec::new(), own.home(d, root(result)));
                    World::each(home, result, |cell| marks.push(own.cells[cell]));
                    let mut marks = marks.into_iter();
                    World::each(world.home(d, root(result)), result, |cell| world.cells[cell] = marks.next().unwrap());
                    if let Some(text) = self.missed(d, &world, first, last) {
                        return Some(text);
                    }
                }
                continue;
            }
            let touched = sources(t).chain([t]).any(|s| gone.contains(&root(s)));
            if touched && d.info(t).kind != Kind::View {
                return Some("a node outside needs memory that is not there");
            }
            if world.run(d, t) != self.seen[i] {
                return Some("a node outside reads something else");
            }
        }
        // memory that nobody was given is nobody's
        for &t in gone.iter().filter(|&&t| !d.info(t).allocated) {
            let at = d.info(t).offset / CELL..(d.info(t).offset + extent(t).1) / CELL;
            world.cells[at.clone()].copy_from_slice(&self.end().cells[at]);
        }
        (world != *self.end()).then_some("memory ends up with something else")
    }

    /// What is looked at directly after the match, in `world`.
    fn missed(&self, d: &Drawn, world: &World, first: usize, last: usize) -> Option<&'static str> {
        let (range, then) = (&d.nodes[first..=last], &self.after[last]);
        for &t in &range[..last - first] {
            // SAFETY: a tensor of the drawn graph.
            let flags = unsafe { (*t).flags };
            let wanted = GGML_TENSOR_FLAG_OUTPUT.0 | GGML_TENSOR_FLAG_INPUT.0 | GGML_TENSOR_FLAG_PARAM.0;
            let flagged = flags & (wanted | GGML_TENSOR_FLAG_LOSS.0) != 0;
            let read = |by: &*mut ggml_tensor| *by != t && sources(*by).any(|s| s == t);
            let result = !d.nodes.iter().any(read);
            let kept = flagged || result || d.redirected.contains(&t);
            if kept && world.look(d, t) != then.look(d, t) {
                return Some("a result is missed");
            }
        }
        (world.look(d, range[last - first]) != then.look(d, range[last - first])).then_some("the result is another")
    }
}
