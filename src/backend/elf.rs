//! Reads what a shared library (ELF, 64 bits) defines, before it is loaded.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Longest table that is read, bytes.
const LIMIT: u64 = 1 << 28;
const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;
const DT_SYMBOLIC: u64 = 16;
const DT_FLAGS: u64 = 30;
const DF_SYMBOLIC: u64 = 2;

struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn read(file: &mut File, offset: u64, size: u64) -> Option<Vec<u8>> {
    if size > LIMIT || offset.checked_add(size)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; size as usize];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn sections(file: &mut File) -> Option<Vec<Section>> {
    let head = read(file, 0, 64)?;
    // ELF of 64 bits, little-endian.
    if head[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (at, each, n) = (u64_at(&head, 0x28)?, u16_at(&head, 0x3a)?, u16_at(&head, 0x3c)?);
    let table = read(file, at, u64::from(each) * u64::from(n))?;
    (0..usize::from(n))
        .map(|i| {
            let s = table.get(i * usize::from(each)..(i + 1) * usize::from(each))?;
            let (offset, size) = (u64_at(s, 0x18)?, u64_at(s, 0x20)?);
            Some(Section { kind: u32_at(s, 4)?, offset, size, link: u32_at(s, 0x28)? as usize })
        })
        .collect()
}

/// Whether the library at `path` is shorter than it says: mapping it would end the process. `None`: no library of this kind.
pub fn is_cut(path: &Path) -> Option<bool> {
    const PT_LOAD: u32 = 1;
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let head = read(&mut file, 0, 64)?;
    if head[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (at, each, n) = (u64_at(&head, 0x20)?, u16_at(&head, 0x36)?, u16_at(&head, 0x38)?);
    let Some(table) = read(&mut file, at, u64::from(each) * u64::from(n)) else { return Some(true) };
    let beyond = |p: &[u8]| {
        let end = u64_at(p, 8).zip(u64_at(p, 0x20)).and_then(|(offset, size)| offset.checked_add(size));
        u32_at(p, 0) == Some(PT_LOAD) && end.is_none_or(|end| end > length)
    };
    Some(table.chunks(usize::from(each).max(1)).any(beyond))
}

/// Whether the library at `path` defines one of `names` for others and does not bind its own references to itself (`-Bsymbolic`):
/// then the process's first definition is what they find. `None`: no library of this kind.
pub fn exposes(path: &Path, names: &[&str]) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    let sections = sections(&mut file)?;
    let find = |kind: u32| sections.iter().find(|s| s.kind == kind);
    if let Some(s) = find(SHT_DYNAMIC) {
        let entries = read(&mut file, s.offset, s.size)?;
        let symbolic = entries.chunks_exact(16).any(|e| match (u64_at(e, 0), u64_at(e, 8)) {
            (Some(DT_SYMBOLIC), _) => true,
            (Some(DT_FLAGS), Some(flags)) => flags & DF_SYMBOLIC != 0,
            _ => false,
        });
        if symbolic {
            return Some(false);
        }
    }
    let symbols = find(SHT_DYNSYM)?;
    let text = sections.get(symbols.link)?;
    let (symbols, text) = (read(&mut file, symbols.offset, symbols.size)?, read(&mut file, text.offset, text.size)?);
    let name_of = |s: &[u8]| text.get(u32_at(s, 0)? as usize..)?.split(|&b| b == 0).next();
    let defined = |s: &&[u8]| u16_at(s, 6).is_some_and(|section| section != 0);
    let listed = |s: &[u8]| name_of(s).is_some_and(|name| names.iter().any(|n| n.as_bytes() == name));
    Some(symbols.chunks_exact(24).filter(defined).any(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("ggml-elf-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    }

    /// An ELF file of a dynamic section, one symbol and its name.
    fn library(flags: u64, section: u16) -> Vec<u8> {
        let mut file = vec![0u8; 64 + 3 * 64 + 16 + 48 + 16];
        let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(&mut file, 0, &[0x7f, b'E', b'L', b'F', 2, 1]);
        put(&mut file, 0x28, &64u64.to_le_bytes());
        put(&mut file, 0x3a, &64u16.to_le_bytes());
        put(&mut file, 0x3c, &3u16.to_le_bytes());
        let data = 64 + 3 * 64;
        let parts = [(SHT_DYNAMIC, data, 16, 0u32), (SHT_DYNSYM, data + 16, 48, 2), (3, data + 64, 16, 0)];
        for (i, (kind, offset, size, link)) in parts.into_iter().enumerate() {
            let at = 64 + 64 * i;
            put(&mut file, at + 4, &kind.to_le_bytes());
            put(&mut file, at + 0x18, &(offset as u64).to_le_bytes());
            put(&mut file, at + 0x20, &(size as u64).to_le_bytes());
            put(&mut file, at + 0x28, &link.to_le_bytes());
        }
        put(&mut file, data, &DT_FLAGS.to_le_bytes());
        put(&mut file, data + 8, &flags.to_le_bytes());
        put(&mut file, data + 16 + 24, &1u32.to_le_bytes());
        put(&mut file, data + 16 + 24 + 6, &section.to_le_bytes());
        put(&mut file, data + 64 + 1, b"ggml_init\0");
        file
    }

    #[test]
    fn definitions_are_told_from_imports_and_from_bound_ones() {
        for (flags, section, expected) in [(0, 1, true), (0, 0, false), (DF_SYMBOLIC, 1, false)] {
            let path = scratch(&format!("{flags}-{section}"), &library(flags, section));
            assert_eq!(exposes(&path, &["other", "ggml_init"]), Some(expected), "flags {flags}, section {section}");
            assert_eq!(exposes(&path, &["ggml_ini", "ggml_init2", ""]), Some(false));
            let _ = std::fs::remove_file(path);
        }
    }

    #[test]
    fn a_file_that_was_cut_is_told() {
        let mut file = library(0, 1);
        // One segment of the whole file, its header behind all else.
        let at = file.len();
        file.resize(at + 56, 0);
        let whole = file.len() as u64;
        for (offset, bytes) in
            [(0x20, (at as u64).to_le_bytes()), (at, 1u64.to_le_bytes()), (at + 0x20, whole.to_le_bytes())]
        {
            file[offset..offset + 8].copy_from_slice(&bytes);
        }
        file[0x36..0x3a].copy_from_slice(&[56, 0, 1, 0]);
        assert_eq!(is_cut(&scratch("whole", &file)), Some(false));
        assert_eq!(is_cut(&scratch("whole", &file[..at])), Some(true));
        file[at + 0x20] += 1;
        assert_eq!(is_cut(&scratch("whole", &file)), Some(true));
        assert_eq!(is_cut(&scratch("whole", b"text")), None);
        let _ = std::fs::remove_file(scratch("whole", b""));
    }

    #[test]
    fn what_is_no_library_is_told() {
        let whole = library(0, 1);
        for n in 0..whole.len() {
            // Cut anywhere, there is no answer or a right one, and no fault.
            let path = scratch("cut", &whole[..n]);
            assert_ne!(exposes(&path, &["no_such"]), Some(true));
        }
        let mut wild = whole.clone();
        for at in 0..whole.len() {
            wild[at] = 0xff;
            let path = scratch("cut", &wild);
            let _ = (exposes(&path, &["no_such"]), is_cut(&path));
            wild[at] = whole[at];
        }
        let _ = std::fs::remove_file(scratch("cut", b""));
        assert_eq!(exposes(Path::new("/no/such/file"), &["x"]), None);
    }
}
