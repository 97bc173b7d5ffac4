//! Holds the public headers against upstream's: `ggml-oxide-abi-test OURS THEIRS` takes the two include folders.
//!
//! bindgen reads both; every structure, enumeration value, type and function of ours that upstream has too must be equal, names of
//! parameters and fields of ours aside where the layout agrees. What only we have must be in `OURS_ALONE`.

use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Headers of both, with the private ones whose layouts modules and clients use.
const HEADERS: [&str; 6] = ["ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-cpu.h", "ggml-opt.h", "gguf.h"];

/// Structures that upstream leaves without a name, as bindgen calls them, and our names.
const NAMED: [(&str, &str); 2] = [
    ("ggml_opt_optimizer_params__bindgen_ty_1", "ggml_opt_adamw_params"),
    ("ggml_opt_optimizer_params__bindgen_ty_2", "ggml_opt_sgd_params"),
];

/// What this library adds.
const OURS_ALONE: &[&str] = &[
    "GGML_N_OP_PARAMS",
    "ggml_abort_callback_t",
    "ggml_gallocr_set_skipped_tensors",
    "GGML_TYPE_F8_E4M3",
    "GGML_TYPE_F8_E5M2",
];

/// Values that are not upstream's, and what they are: the formats above are counted.
const OURS_DIFFERENT: &[(&str, &str)] = &[("GGML_TYPE_COUNT", "= 45")];

/// Bytes of a tensor's name that both are read with, one pass each.
const MAX_NAMES: [usize; 2] = [64, 160];

type Items = BTreeMap<String, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [ours, theirs] = args.as_slice() else {
        println!("usage: ggml-oxide-abi-test OURS THEIRS: compares two include folders of ggml");
        return if args.iter().any(|a| a == "--help") { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    let (mut passed, mut failed) = (0, 0);
    for max_name in MAX_NAMES {
        match (read(Path::new(ours), false, max_name), read(Path::new(theirs), true, max_name)) {
            (Ok(ours), Ok(theirs)) => compare(&ours, &theirs, max_name, &mut passed, &mut failed),
            (Err(e), _) | (_, Err(e)) => {
                println!("not ok {e}");
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn compare(ours: &Items, theirs: &Items, max_name: usize, passed: &mut usize, failed: &mut usize) {
    for (name, item) in ours {
        let fault = match theirs.get(name) {
            Some(other) if other == item => None,
            Some(other)
                if OURS_DIFFERENT.iter().any(|(n, ours)| n == name && item.ends_with(ours) && other != item) =>
            {
                None
            }
            Some(other) => Some(format!("ours   {item}\n       theirs {other}")),
            None if OURS_ALONE.contains(&name.as_str()) => None,
            None => Some("upstream has no such name".into()),
        };
        match fault {
            None => *passed += 1,
            Some(fault) => {
                *failed += 1;
                println!("not ok GGML_MAX_NAME {max_name} {name}: {fault}");
            }
        }
    }
}

/// What the headers in `folder` declare, by name.
fn read(folder: &Path, upstream: bool, max_name: usize) -> Result<Items, String> {
    let implementation = if upstream {
        ["../src/ggml-impl.h", "../src/ggml-backend-impl.h"]
    } else {
        ["ggml/src/ggml-impl.h", "ggml-backend-impl.h"]
    };
    let mut builder = bindgen::Builder::default()
        .clang_arg(format!("-I{}", folder.display()))
        .clang_arg(format!("-I{}", folder.join("../src").display()))
        .clang_arg(format!("-DGGML_MAX_NAME={max_name}"))
        // ggml-sd.h, of which upstream has nothing: tests/c/sd_client.c holds its functions to the types that programs expect.
        .clang_arg("-DGGML_NO_SD_BUILDERS")
        .allowlist_item("(ggml|gguf|quantize|dequantize|GGML|GGUF)_.*")
        // Of the graph's private header only the layouts are public.
        .blocklist_function("(ggml_(bitset|hash|graph_view|can_fuse|node_|are_same_layout|op_is|impl_|set_op|get_op|unravel|check).*|ggml_(critical|log_internal|aligned|print_backtrace|validate|e8m0|ue4m3|compute|fp32|bf16|fp16|lookup|fopen_|threadpool_).*)")
        .blocklist_item("GGML_(HASHSET|BITSET|LOG|CRASH|LAYOUT|STRINGIFY|API|TENSOR_SIZE|UNUSED|VERSION|COMMIT|COMMON|SIMD|F16|CPU|COMPUTE|FP16|TABLE|KQ|GELU|EXPERIMENTAL|DEBUG).*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false);
    for header in HEADERS.iter().chain(&implementation) {
        builder = builder.header(folder.join(header).display().to_string());
    }
    let text = builder.generate().map_err(|e| format!("{}: {e}", folder.display()))?.to_string();
    let text = NAMED.iter().fold(text, |text, (nameless, named)| text.replace(nameless, named));
    let file = syn::parse_file(&text).map_err(|e| e.to_string())?;
    let mut items = Items::new();
    for item in file.items {
        insert(&mut items, item);
    }
    Ok(items)
}

fn insert(items: &mut Items, item: syn::Item) {
    match item {
        syn::Item::Const(c) => {
            items.insert(
                c.ident.to_string(),
                format!("const {} = {}", c.ty.to_token_stream(), c.expr.to_token_stream()),
            );
        }
        syn::Item::Type(t) => {
            let mut ty = *t.ty;
            nameless(&mut ty);
            items.insert(t.ident.to_string(), format!("type {}", ty.to_token_stream()));
        }
        syn::Item::Struct(s) => {
            let fields: Vec<String> = s
                .fields
                .into_iter()
                .map(|mut f| {
                    nameless(&mut f.ty);
                    let name = f.ident.map(|i| i.to_string()).unwrap_or_default();
                    format!("{name}: {}", f.ty.to_token_stream())
                })
                .collect();
            items.insert(s.ident.to_string(), format!("struct {{ {} }}", fields.join(", ")));
        }
        syn::Item::ForeignMod(block) => {
            for item in block.items {
                if let syn::ForeignItem::Fn(f) = item {
                    let types: Vec<String> = f
                        .sig
                        .inputs
                        .into_iter()
                        .map(|arg| match arg {
                            syn::FnArg::Typed(mut arg) => {
                                nameless(&mut arg.ty);
                                arg.ty.to_token_stream().to_string()
                            }
                            other => other.to_token_stream().to_string(),
                        })
                        .collect();
                    let variadic = if f.sig.variadic.is_some() { ", ..." } else { "" };
                    let returns = f.sig.output.to_token_stream();
                    items.insert(f.sig.ident.to_string(), format!("fn({}{variadic}) {returns}", types.join(", ")));
                }
            }
        }
        _ => {}
    }
}

/// Takes the names of parameters out of function pointer types.
fn nameless(ty: &mut syn::Type) {
    match ty {
        syn::Type::BareFn(f) => {
            for arg in &mut f.inputs {
                arg.name = None;
                nameless(&mut arg.ty);
            }
        }
        syn::Type::Ptr(p) => nameless(&mut p.elem),
        syn::Type::Array(a) => nameless(&mut a.elem),
        syn::Type::Path(path) => {
            for segment in &mut path.path.segments {
                if let syn::PathArguments::AngleBracketed(args) = &mut segment.arguments {
                    for arg in &mut args.args {
                        if let syn::GenericArgument::Type(inner) = arg {
                            nameless(inner);
                        }
                    }
                }
            }
        }
        _ => {}
    }
}
