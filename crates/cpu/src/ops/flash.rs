//! FLASH_ATTN_EXT: attention that never holds a whole row of logits.
//!
//! Queries f32; keys and values of any format that decodes; mask f16; ALiBi, softcap, sinks. Everything is computed in f32,
//! whatever precision the node asks for. Rows of a tile are the queries of all heads that share a key head; each row's result depends
//! on its own data only, so neither the tile height nor the number of threads changes a bit. A row that is masked out entirely,
//! without a sink, is zeros.

use super::flash_tile::{Step, Thin, KV, MR, PANEL};
use super::rows::{decode, is_float, load_packed};
use super::rules::*;
use super::softmax::slope;
use super::transpose::transpose;
use super::vec::map::{map, Times};
use super::vec::{dispatch, Bf16, Elem, F16, F32, LANES};
use crate::entry::{all_tasks, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

/// Query rows of a tile at most.
const MAX_ROWS: usize = 20 * MR;
/// Query rows for which keys and values are not worth turning.
const THIN: usize = 4;
/// Tiles to aim for.
const TILES: usize = 32;
/// Keys that are decoded before they are turned.
const TURN: usize = 16;

/// How the work falls into tiles.
struct Plan {
    /// Query heads for each key head, as far as keys and values agree.
    group: usize,
    /// Query rows of a tile.
    rows: usize,
    /// Tiles of one group of heads.
    tiles: usize,
    dk: usize,
    dv: usize,
    padded: usize,
    /// Few rows: keys and values are used where they lie.
    thin: bool,
}

fn plan(op: &ggml_tensor) -> Plan {
    let dims = |i: usize| src(op, i).map_or([0; 4], |t| View::of(t).ne);
    let (q, k, v) = (dims(0), dims(1), dims(2));
    let group = if k[2] == v[2] && k[2] > 0 { q[2] / k[2] } else { 1 };
    let total = group * q[1];
    let mut rows = MAX_ROWS;
    // Enough tiles to share out; not a matter of how many threads there are, so that results are not either.
    while rows > 4 * MR && total.div_ceil(rows) * (q[2] / group.max(1)) * q[3] < TILES {
        rows = (rows / 2).next_multiple_of(MR);
    }
    let rows = rows.min(total);
    let types = [1, 2].map(|i| src(op, i).map_or(GGML_TYPE_I8, |t| t.r#type));
    let thin = total <= THIN && types[0] == types[1] && is_float(types[0]);
    Plan {
        group,
        rows,
        tiles: total.div_ceil(rows.max(1)),
        dk: q[0],
        dv: v[0],
        padded: v[0].next_multiple_of(LANES),
        thin,
    }
}

/// A thread's memory, in f32 values.
struct Room {
    k: *mut f32,
    v: *mut f32,
    s: *mut f32,
    turn: *mut f32,
    q: *mut f32,
    o: *mut f32,
    l: *mut f64,
    m: *mut f32,
    slope: *mut f32,
    mask: *mut *const u16,
}

fn room_sizes(p: &Plan) -> [usize; 10] {
    let lines = |n: usize| n.next_multiple_of(16);
    let r = lines(p.rows);
    [p.dk * KV, p.padded * KV, MR * KV, lines(p.dk * TURN), lines(p.dk * p.rows), p.padded * p.rows, 2 * r, r, r, 2 * r]
}

fn room_bytes(p: &Plan) -> usize {
    room_sizes(p).iter().fold(0usize, |a, &n| a.saturating_add(n)).saturating_mul(4)
}

impl Room {
    fn at(base: *mut u8, p: &Plan) -> Room {
        let mut next = base.cast::<f32>();
        let mut part = [std::ptr::null_mut::<f32>(); 10];
        for (part, n) in part.iter_mut().zip(room_sizes(p)) {
            *part = next;
            next = next.wrapping_add(n);
        }
        let [k, v, s, turn, q, o, l, m, slope, mask] = part;
        Room { k, v, s, turn, q, o, l: l.cast(), m, slope, mask: mask.cast() }
    }
}

struct Args {
    q: View,
    k: View,
    v: View,
    mask: Option<View>,
    scale: f32,
    cap: f32,
    max_bias: f32,
}

/// A row of a format that decodes, as f32.
unsafe fn row(v: &View, i: [usize; 3], out: *mut f32) {
    let n = v.ne[0];
    // SAFETY: the caller's promise: the row is good and packed, `out` has room for it.
    unsafe {
        match Type::from_id(v.ty.0) {
            Some(Type::F32 | Type::F16 | Type::BF16) => load_packed(v.ty, v.row(i), out, n),
            Some(ty) => decode(ty, v.row(i), out, n),
            None => {}
        }
    }
}

impl Args {
    /// Keys `at..at + n`, turned, and values.
    unsafe fn pack(&self, p: &Plan, room: &Room, at: usize, n: usize, kh: [usize; 2], vh: [usize; 2]) {
        // SAFETY: the tile lies inside keys and values; the room is planned for it.
        unsafe {
            for j in (0..n).step_by(TURN) {
                let m = (n - j).min(TURN);
                for t in 0..m {
                    row(&self.k, [at + j + t, kh[0], kh[1]], room.turn.add(t * p.dk));
                }
                let out = room.k.add(j / PANEL * PANEL * p.dk + j % PANEL).cast();
                transpose(4, room.turn.cast(), 4 * p.dk, out, 4 * PANEL, m, p.dk);
            }
            // Logits of the lanes past the end are computed and thrown away; they must be numbers that cannot trap or stall.
            let padded = n.next_multiple_of(LANES);
            for j in n..padded {
                for d in 0..p.dk {
                    *room.k.add((j / PANEL * p.dk + d) * PANEL + j % PANEL) = 0.0;
                }
            }
            for t in 0..n {
                let out = room.v.add(t * p.padded);
                row(&self.v, [at + t, vh[0], vh[1]], out);
                for i in p.dv..p.padded {
                    *out.add(i) = 0.0;
                }
            }
        }
    }

    /// Whether keys `at..at + n` are masked out for all rows.
    unsafe fn all_masked(&self, masks: &[*const u16], at: usize, n: usize) -> bool {
        // SAFETY: mask rows have a value for each key.
        masks.iter().all(|&m| (at..at + n).all(|i| unsafe { m.add(i).read_unaligned() } == 0xfc00))
    }
}

fn run(node: &Node, team: &Team) {
    let p = plan(node.dst);
    let d = node.out();
    let cap = node.f32(2);
    let a = Args {
        q: node.arg(0),
        k: node.arg(1),
        v: node.arg(2),
        mask: node.src_opt(3).map(View::of),
        scale: if cap == 0.0 { node.f32(0) } else { node.f32(0) / cap },
        cap,
        max_bias: node.f32(1),
    };
    let sinks = node.src_opt(4).map(View::of);
    let (scratch, _) = team.scratch();
    let room = Room::at(scratch.wrapping_add(team.ith() * room_bytes(&p)), &p);
    let groups = a.q.ne[2] / p.group;
    for task in team.chunks(p.tiles * groups * a.q.ne[3], 1).map(|c| c.start) {
        let (tile, g, i3) = (task % p.tiles, task / p.tiles % groups, task / p.tiles / groups);
        // SAFETY: the room is planned for the node; tiles are of distinct rows of dst.
        unsafe { run_tile(&p, &a, &room, &d, sinks.as_ref(), tile, g, i3) };
    }
}

unsafe fn thin<E: Elem>(step: Step, a: &Args, k: *const u8, v: *const u8) {
    let (k_stride, v_stride, dv) = (a.k.nb[1], a.v.nb[1], a.v.ne[0]);
    // SAFETY: the caller's promise.
    unsafe { dispatch(Thin::<E> { step, k: k.cast(), k_stride, v: v.cast(), v_stride, dv }) }
}

#[allow(clippy::too_many_arguments)]
unsafe fn run_tile(p: &Plan, a: &Args, room: &Room, d: &View, sinks: Option<&View>, tile: usize, g: usize, i3: usize) {
    let (n1, n_head) = (a.q.ne[1], a.q.ne[2]);
    let first = tile * p.rows;
    let rows = (p.group * n1 - first).min(p.rows);
    // Head and query of row r.
    let place = |r: usize| (g * p.group + (first + r) / n1, (first + r) % n1);
    // SAFETY: the caller's promise.
    unsafe {
        for r in 0..rows {
            let (h, i1) = place(r);
            row(&a.q, [i1, h, i3], room.q.add(r * p.dk));
            *room.m.add(r) = f32::NEG_INFINITY;
            *room.l.add(r) = 0.0;
            *room.slope.add(r) = slope(a.max_bias, h, n_head);
            if let Some(m) = &a.mask {
                *room.mask.add(r) = m.row([i1, h % m.ne[2], i3 % m.ne[3]]).cast();
            }
        }
        room.o.write_bytes(0, rows * p.padded);
        let h = g * p.group;
        let share = |v: &View| [h / (n_head / v.ne[2]), i3 / (a.q.ne[3] / v.ne[3])];
        let (kh, vh) = (share(&a.k), share(&a.v));
        let masks = if a.mask.is_some() { std::slice::from_raw_parts_mut(room.mask, rows) } else { &mut [] };
        for at in (0..a.k.ne[1]).step_by(KV) {
            let n = (a.k.ne[1] - at).min(KV);
            if !masks.is_empty() && a.all_masked(masks, 0, n) {
                masks.iter_mut().for_each(|m| *m = m.add(n));
                continue;
            }
            let step = Step {
                rows,
                q: room.q,
                dk: p.dk,
                k: room.k,
                n,
                v: room.v,
                dv: p.padded,
                o: room.o,
                m: room.m,
                l: room.l,
                s: room.s,
                scale: a.scale,
                cap: a.cap,
                mask: if masks.is_empty() { std::ptr::null() } else { room.mask },
                slope: room.slope,
            };
            if p.thin {
                let (k, v) = (a.k.row([at, kh[0], kh[1]]), a.v.row([at, vh[0], vh[1]]));
                match a.k.ty {
                    GGML_TYPE_F32 => thin::<F32>(step, a, k, v),
                    GGML_TYPE_F16 => thin::<F16>(step, a, k, v),
                    _ => thin::<Bf16>(step, a, k, v),
                }
            } else {
                a.pack(p, room, at, n, kh, vh);
                dispatch(step);
            }
            masks.iter_mut().for_each(|m| *m = m.add(n));
        }
        for r in 0..rows {
            let (h, i1) = place(r);
            let (m, mut l, mut keep) = (*room.m.add(r), *room.l.add(r), 1.0f64);
            if let Some(s) = sinks {
                let sink = s.at(h, [0; 3]).cast::<f32>().read_unaligned();
                if sink > m {
                    keep = f64::from(m - sink).exp();
                    l = l * keep + 1.0;
                } else if sink > f32::NEG_INFINITY {
                    l += f64::from(sink - m).exp();
                }
            }
            let f = if l == 0.0 { 0.0 } else { keep / l };
            map(Times(f as f32), room.o.add(r * p.padded), d.row([h, i1, i3]).cast(), p.dv);
        }
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    room_bytes(&plan(op)).saturating_mul(nth)
}

fn supports(op: &ggml_tensor) -> Rule {
    let (q, k, v) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    is_f32(q)?;
    is_f32(op)?;
    packed_rows(op)?;
    for t in [q, k, v] {
        packed_rows(t)?;
        packed_blocks(t)?;
        decodable(t)?;
    }
    let plain = |t: &ggml_tensor| {
        !matches!(t.r#type, GGML_TYPE_I8 | GGML_TYPE_I16 | GGML_TYPE_I32 | GGML_TYPE_I64 | GGML_TYPE_F64)
    };
    ensure(plain(k) && plain(v), "keys and values must be of a float or block format")?;
    ensure(q.ne[0] == k.ne[0], "queries and keys must have the same length")?;
    ensure(k.ne[1] == v.ne[1], "there must be as many keys as values")?;
    ensure(q.ne[0] <= 1 << 16 && v.ne[0] <= 1 << 16, "heads are too long")?;
    for t in [k, v] {
        let divides = t.ne[2] > 0 && t.ne[3] > 0 && q.ne[2] % t.ne[2] == 0 && q.ne[3] % t.ne[3] == 0;
        ensure(divides, "heads and batches of keys and values must divide those of the queries")?;
    }
    ensure(op.ne == [v.ne[0], q.ne[2], q.ne[1], q.ne[3]], "the result must be value length, heads, queries, batches")?;
    if let Ok(m) = src(op, 3) {
        ensure(m.r#type == GGML_TYPE_F16, "the mask must be f16")?;
        packed_rows(m)?;
        ensure(m.ne[0] >= k.ne[1] && m.ne[1] >= q.ne[1], "the mask must cover queries and keys")?;
        let divides = m.ne[2] > 0 && m.ne[3] > 0 && q.ne[2] % m.ne[2] == 0 && q.ne[3] % m.ne[3] == 0;
        ensure(divides, "the mask must repeat to the heads and batches")?;
    }
    if let Ok(s) = src(op, 4) {
        is_f32(s)?;
        filled(s)?;
        ensure(s.ne[0] == q.ne[2], "there must be one sink for each head")?;
    }
    Ok(())
}

/// FLASH_ATTN_EXT.
pub static FLASH: OpEntry = OpEntry { supports, work, n_tasks: all_tasks, run };
