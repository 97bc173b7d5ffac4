//! Tests of moving nodes: each rule by itself, and random moves on random graphs ([`property`]).
#![allow(clippy::unwrap_used)]

mod property;

use super::*;
use crate::backend::{Buffer, Buft};
use crate::graph::testing::Bench;
use crate::graph::{build, memory};
use std::ffi::c_void;

type T = *mut ggml_tensor;

/// A graph of `nodes` in this order.
fn graph(b: &mut Bench, nodes: &[T]) -> *mut ggml_cgraph {
    let graph = memory::new(&mut b.ctx, 64, false).unwrap();
    // SAFETY: the bench's.
    nodes.iter().for_each(|&t| unsafe { build::add_node(&mut *graph, t) }.unwrap());
    graph
}

/// The verdict on a move within `nodes`; it must be what [`delay`] does with a graph of them.
fn judge(b: &mut Bench, nodes: &[T], first: usize, count: usize, before: usize) -> Result<(), DelayRefusal> {
    let graph = graph(b, nodes);
    // SAFETY: the bench's.
    unsafe {
        let facts = Facts::read(nodes, &Uses::of(&*graph)).unwrap();
        let verdict = may_delay(&facts, first, count, before);
        let done = delay(&mut *graph, first, count, before);
        let mut expected = nodes.to_vec();
        match &verdict {
            Ok(()) => {
                assert_eq!(done, Ok(()));
                expected[first..before].rotate_left(count);
            }
            Err(refusal) => {
                let error = done.unwrap_err();
                assert!(error.text.ends_with(&format!(": {refusal}")), "'{}', not '{refusal}'", error.text);
                let out_of_range = matches!(refusal, DelayRefusal::OutOfRange { .. });
                let code = if out_of_range { GGML_EXT_CODE_BAD_ARGUMENT } else { GGML_EXT_CODE_NOT_LEGAL };
                assert_eq!(error.code, code);
            }
        }
        assert_eq!(graph::nodes(&*graph), expected);
        verdict
    }
}

fn over(b: &mut Bench, op: ggml_op, a: T) -> T {
    // SAFETY: tensors of the bench.
    unsafe { b.alias(op, a, &(*a).ne, Some((*a).nb), 0) }
}

fn cpy(b: &mut Bench, a: T, to: T) -> T {
    let t = over(b, GGML_OP_CPY, to);
    // SAFETY: tensors of the bench.
    unsafe { (&mut (*t).src)[..2].copy_from_slice(&[a, to]) };
    t
}

fn cast(b: &mut Bench, a: T) -> T {
    // SAFETY: tensors of the bench.
    unsafe {
        let t = b.node(GGML_OP_CPY, GGML_TYPE_F16, &(*a).ne, &[a]);
        (*t).src[1] = t;
        t
    }
}

#[test]
fn ext_45_independent_nodes_are_crossed() {
    let mut b = Bench::new();
    let (x, y, z) = (b.leaf(8), b.leaf(8), b.leaf(8));
    let (p, q) = (b.scale(x, 2), b.op(GGML_OP_SQR, &[x]));
    let p2 = b.add(p, p);
    let (copy, dup, cont) = (cpy(&mut b, x, y), b.op(GGML_OP_DUP, &[x]), b.op(GGML_OP_CONT, &[y]));
    let (half, over_z) = (cast(&mut b, x), over(&mut b, GGML_OP_SQR, z));
    let (view, again) = (b.view(q, 0, 4), b.view(over_z, 0, 4));
    let nodes = [p, p2, q, copy, dup, cont, half, over_z, view, again];
    assert_eq!(judge(&mut b, &nodes, 0, 2, nodes.len()), Ok(()));
    // copies, conversions and nodes in place can be moved as well
    assert_eq!(judge(&mut b, &nodes, 6, 1, 10), Ok(()));
    assert_eq!(judge(&mut b, &nodes, 3, 1, 5), Ok(()));
    assert_eq!(judge(&mut b, &nodes, 3, 1, 6), Err(DelayRefusal::ReadsResult { node: 5 }));
    assert_eq!(judge(&mut b, &nodes, 7, 1, 9), Ok(()));
    assert_eq!(judge(&mut b, &nodes, 7, 1, 10), Err(DelayRefusal::Needs { node: 9, moved: 7 }));
}

#[test]
fn ext_45_the_place_is_behind_the_nodes_and_in_the_graph() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let nodes = [b.scale(x, 2), b.scale(x, 3), b.scale(x, 4)];
    for (first, count, before) in [(0, 0, 2), (0, 1, 4), (1, 2, 2), (2, 1, 1), (3, 1, 3), (1, usize::MAX, 3), (0, 3, 2)]
    {
        let refused = Err(DelayRefusal::OutOfRange { first, count, before, nodes: 3 });
        assert_eq!(judge(&mut b, &nodes, first, count, before), refused);
    }
    assert_eq!(judge(&mut b, &nodes, 0, 2, 2), Ok(()), "where it is");
    assert_eq!(judge(&mut b, &nodes, 0, 3, 3), Ok(()));
}

#[test]
fn ext_45_dependencies_stay() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let p = b.scale(x, 2);
    let q = b.scale(x, 3);
    let r = b.add(p, q);
    assert_eq!(judge(&mut b, &[p, q, r], 0, 1, 3), Err(DelayRefusal::Needs { node: 2, moved: 0 }));
    assert_eq!(judge(&mut b, &[p, q, r], 0, 1, 2), Ok(()));
    let view = b.view(p, 0, 4);
    assert_eq!(judge(&mut b, &[p, q, view], 0, 1, 3), Err(DelayRefusal::Needs { node: 2, moved: 0 }));
    // a view of its storage whose edge goes round it
    let round = b.view(p, 0, 4);
    // SAFETY: the bench's.
    unsafe { (*round).src[0] = x };
    assert_eq!(judge(&mut b, &[p, q, round], 0, 1, 3), Err(DelayRefusal::Needs { node: 2, moved: 0 }));
    // what is read before it is computed
    assert_eq!(judge(&mut b, &[r, p, q], 0, 1, 2), Err(DelayRefusal::Early { moved: 0, node: 1 }));
    assert_eq!(judge(&mut b, &[p, p, q], 0, 1, 3), Err(DelayRefusal::Repeated { node: 0 }));
}

#[test]
fn ext_45_unknown_side_effects_are_neither_moved_nor_crossed() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let p = b.scale(x, 2);
    for op in [GGML_OP_MAP_CUSTOM1, GGML_OP_CUSTOM, GGML_OP_OPT_STEP_ADAMW, ggml_op(4711)] {
        let call = b.op(op, &[x]);
        assert_eq!(judge(&mut b, &[p, call], 0, 1, 2), Err(DelayRefusal::Unknown { node: 1, op }));
        assert_eq!(judge(&mut b, &[call, p], 0, 1, 2), Err(DelayRefusal::Unknown { node: 0, op }));
    }
    // an operator in place that is not known for it
    let y = b.leaf(8);
    let odd = over(&mut b, GGML_OP_MUL_MAT, y);
    let op = GGML_OP_MUL_MAT;
    assert_eq!(judge(&mut b, &[p, odd], 0, 1, 2), Err(DelayRefusal::Unknown { node: 1, op }));
}

#[test]
fn ext_45_writes_that_alias_inputs_or_outputs() {
    let mut b = Bench::new();
    let (x, y) = (b.leaf(8), b.leaf(8));
    let (low, high) = (b.view(x, 0, 4), b.view(x, 4, 4));
    let p = b.scale(low, 2);
    let (into_low, into_high) = (over(&mut b, GGML_OP_SQR, low), over(&mut b, GGML_OP_SQR, high));
    assert_eq!(judge(&mut b, &[p, into_low], 0, 1, 2), Err(DelayRefusal::WritesInput { node: 1 }));
    assert_eq!(judge(&mut b, &[p, into_high], 0, 1, 2), Ok(()));
    let (first, second) = (cpy(&mut b, y, low), cpy(&mut b, y, low));
    assert_eq!(judge(&mut b, &[first, second], 0, 1, 2), Err(DelayRefusal::WritesResult { node: 1 }));
    assert_eq!(judge(&mut b, &[first, into_high, second], 0, 1, 2), Ok(()));
    assert_eq!(judge(&mut b, &[into_low, p], 0, 1, 2), Err(DelayRefusal::ReadsResult { node: 1 }));
    let own = b.op(GGML_OP_SQR, &[y]);
    // written through the storage that the moved node owns, without reading what it wrote
    let into_own = b.view(own, 0, 8);
    // SAFETY: the bench's.
    unsafe { ((*into_own).op, (*into_own).src[0]) = (GGML_OP_NONE, std::ptr::null_mut()) };
    let write = over(&mut b, GGML_OP_FILL, into_own);
    assert_eq!(judge(&mut b, &[own, write], 0, 1, 2), Err(DelayRefusal::Needs { node: 1, moved: 0 }));
}

unsafe extern "C" fn base(_: ggml_backend_buffer_t) -> *mut c_void {
    std::ptr::without_provenance_mut(4096)
}
unsafe extern "C" fn host(_: ggml_backend_buffer_type_t) -> bool {
    true
}

/// Addresses mean something within the host's memory, or within one buffer of a device.
#[test]
fn ext_45_memory_is_compared_by_place_where_it_has_one() {
    let mut types = [None, Some(host as unsafe extern "C" fn(ggml_backend_buffer_type_t) -> bool)].map(|is_host| {
        let iface = ggml_backend_buffer_type_i {
            get_name: None,
            alloc_buffer: None,
            alloc_buffer_n: None,
            get_alignment: None,
            get_max_size: None,
            get_alloc_size: None,
            get_alloc_size_n: None,
            is_host,
        };
        ggml_backend_buffer_type { iface, device: std::ptr::null_mut(), context: std::ptr::null_mut() }
    });
    let iface = ggml_backend_buffer_i {
        get_base: Some(base),
        // SAFETY: all members are optional functions.
        ..unsafe { std::mem::zeroed() }
    };
    let [device, host] = [&raw mut types[0], &raw mut types[1]];
    // SAFETY: the buffer types outlive the buffers.
    let buffer = |buft| Buffer::new(unsafe { Buft::from_raw(buft) }.unwrap(), iface, std::ptr::null_mut(), 64);
    let buffers = [buffer(device), buffer(device), buffer(host), buffer(host)];
    let place = |t: T, buffer: usize, at: usize| {
        let raw = buffers.get(buffer).map_or(std::ptr::null_mut(), |b| b.as_raw());
        // SAFETY: the bench's.
        unsafe { ((*t).buffer, (*t).data) = (raw, std::ptr::without_provenance_mut(at)) };
    };
    let no_buffer = 9;
    // reader's buffer and address, writer's, and whether they meet
    let cases = [
        (0, 4096, 0, 4112, true),
        (0, 4096, 0, 4128, false),
        (0, 4096, 1, 4096, false),
        (0, 4096, 2, 4096, false),
        (2, 4096, 3, 4100, true),
        (2, 4096, no_buffer, 4127, true),
        (2, 4096, no_buffer, 4128, false),
        (0, 4096, no_buffer, 4096, false),
    ];
    for (of, at, writer, to, meet) in cases {
        let mut b = Bench::new();
        let (x, y) = (b.leaf(8), b.leaf(8));
        place(x, of, at);
        place(y, writer, to);
        let (read, write) = (b.scale(x, 2), over(&mut b, GGML_OP_SQR, y));
        let expected = if meet { Err(DelayRefusal::WritesInput { node: 1 }) } else { Ok(()) };
        assert_eq!(judge(&mut b, &[read, write], 0, 1, 2), expected, "{of} {at} {writer} {to}");
    }
    for buffer in buffers {
        // SAFETY: nothing uses it any more.
        unsafe { buffer.free() }
    }
}

#[test]
fn ext_45_a_move_renews_the_graphs_number_and_keeps_edges() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let nodes = [b.scale(x, 2), b.scale(x, 3), b.scale(x, 4)];
    let g = graph(&mut b, &nodes);
    // SAFETY: the bench's.
    unsafe {
        let before = nodes.map(|t| ((*t).src, (*t).op_params, (*t).flags));
        delay(&mut *g, 0, 1, 2).unwrap();
        assert_eq!((*g).uid, 0, "it has none");
        (*g).uid = 5;
        delay(&mut *g, 0, 1, 1).unwrap();
        assert_eq!((*g).uid, 5, "nothing moved");
        assert!(delay(&mut *g, 0, 3, 9).is_err());
        assert_eq!((*g).uid, 5);
        delay(&mut *g, 0, 1, 3).unwrap();
        assert_ne!((*g).uid, 5);
        assert_eq!(graph::nodes(&*g), [nodes[0], nodes[2], nodes[1]]);
        assert_eq!(nodes.map(|t| ((*t).src, (*t).op_params, (*t).flags)), before);
        // a graph that is not what it says
        let broken = &mut ggml_cgraph { nodes: std::ptr::null_mut(), ..*g };
        assert_eq!(delay(broken, 0, 1, 2).unwrap_err().code, GGML_EXT_CODE_BAD_ARGUMENT);
    }
}

#[test]
fn ext_45_every_refusal_states_its_reason() {
    let (node, moved, op) = (17, 4, GGML_OP_MAP_CUSTOM1);
    let refusals = [
        DelayRefusal::OutOfRange { first: 17, count: 2, before: 18, nodes: 30 },
        DelayRefusal::Repeated { node },
        DelayRefusal::Unknown { node, op },
        DelayRefusal::Needs { node, moved },
        DelayRefusal::Early { moved: node, node: 20 },
        DelayRefusal::WritesInput { node },
        DelayRefusal::WritesResult { node },
        DelayRefusal::ReadsResult { node },
    ];
    let texts: Vec<String> = refusals.iter().map(|r| r.to_string()).collect();
    for (i, text) in texts.iter().enumerate() {
        assert!(text.contains("node 17") && text.len() > 25 && !text.ends_with('.'), "{text}");
        assert!(refusals[i].shifted(100).to_string().contains("node 117"), "{text}");
        assert_eq!(texts.iter().filter(|t| *t == text).count(), 1);
    }
}
