//! What a shared library (ELF, 64 bits) says of itself, before it is loaded.

use object::elf::{FileHeader64, DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, PT_LOAD, SHN_UNDEF, SHT_DYNSYM};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionTable, Sym};
use object::read::{ReadCache, StringTable};
use object::Endianness;
use std::fs::File;
use std::path::Path;

type Header = FileHeader64<Endianness>;

/// Whether the library at `path` is shorter than it says: mapping it would end the process. `None`: no library of this kind.
pub fn is_cut(path: &Path) -> Option<bool> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let data = ReadCache::new(file);
    let header = Header::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let Ok(segments) = header.program_headers(endian, &data) else { return Some(true) };
    Some(segments.iter().any(|s| {
        let end = s.p_offset(endian).checked_add(s.p_filesz(endian));
        s.p_type(endian) == PT_LOAD && end.is_none_or(|end| end > length)
    }))
}

/// Whether the library at `path` defines one of `names` for others and does not bind its own references to itself (`-Bsymbolic`):
/// then the process's first definition is what they find. `None`: no library of this kind.
pub fn exposes(path: &Path, names: &[&str]) -> Option<bool> {
    let data = ReadCache::new(File::open(path).ok()?);
    let header = Header::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    // Sections' names are not looked at, and a stripped library may lack them.
    let sections = SectionTable::<Header, _>::new(header.section_headers(endian, &data).ok()?, StringTable::default());
    if let Some((entries, _)) = sections.dynamic(endian, &data).ok()? {
        let symbolic = entries.iter().any(|e| match e.d_tag(endian) as u32 {
            DT_SYMBOLIC => true,
            DT_FLAGS => e.d_val(endian) & u64::from(DF_SYMBOLIC) != 0,
            _ => false,
        });
        if symbolic {
            return Some(false);
        }
    }
    let symbols = sections.symbols(endian, &data, SHT_DYNSYM).ok().filter(|s| !s.is_empty())?;
    for symbol in symbols.iter().filter(|s| s.st_shndx(endian) != SHN_UNDEF) {
        let name = symbol.name(endian, symbols.strings()).ok()?;
        if names.iter().any(|n| n.as_bytes() == name) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::SHT_DYNAMIC;

    fn scratch(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("ggml-elf-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    }

    /// An ELF file of a dynamic section, one symbol and its name.
    fn library(flags: u32, section: u16) -> Vec<u8> {
        let mut file = vec![0u8; 64 + 3 * 64 + 16 + 48 + 16];
        let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(&mut file, 0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
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
        put(&mut file, data, &u64::from(DT_FLAGS).to_le_bytes());
        put(&mut file, data + 8, &u64::from(flags).to_le_bytes());
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
            assert_ne!(exposes(&path, &["ggml_init"]), Some(false), "{n} bytes");
            assert_eq!(is_cut(&path), if n < 64 { None } else { Some(false) }, "{n} bytes");
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
