//! C streams and C callbacks as Rust readers and writers.

use ggml_oxide_abi::gguf_reader_callback_t;
use std::ffi::c_void;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A C stream that the caller keeps.
pub struct CFile(*mut libc::FILE);

impl CFile {
    /// The stream, or `None` for NULL.
    ///
    /// # Safety
    /// The stream is open as long as the result is used.
    pub unsafe fn new(file: *mut libc::FILE) -> Option<Self> {
        (!file.is_null()).then_some(CFile(file))
    }

    fn fault(&self) -> io::Result<()> {
        // SAFETY: `new`'s promise.
        if unsafe { libc::ferror(self.0) } != 0 {
            return Err(io::Error::from(io::ErrorKind::Other));
        }
        Ok(())
    }
}

impl Read for CFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `new`'s promise; the slice has that many bytes.
        let n = unsafe { libc::fread(out.as_mut_ptr().cast(), 1, out.len(), self.0) };
        if n < out.len() {
            self.fault()?;
        }
        Ok(n)
    }
}

impl Write for CFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: `new`'s promise; the slice has that many bytes.
        let n = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0) };
        if n < bytes.len() {
            self.fault()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: `new`'s promise.
        if unsafe { libc::fflush(self.0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Seek for CFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(n) => (i64::try_from(n).map_err(|_| io::ErrorKind::InvalidInput)?, libc::SEEK_SET),
            SeekFrom::End(n) => (n, libc::SEEK_END),
            SeekFrom::Current(n) => (n, libc::SEEK_CUR),
        };
        // SAFETY: `new`'s promise.
        let at = unsafe {
            if libc::fseeko(self.0, offset, whence) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::ftello(self.0)
        };
        u64::try_from(at).map_err(|_| io::Error::last_os_error())
    }
}

/// A reader over a C callback: it reads at most `piece` bytes at once and never past `size`.
pub struct Callback {
    /// The callback, which is not NULL.
    pub read: gguf_reader_callback_t,
    /// Handed to the callback.
    pub userdata: *mut c_void,
    /// Bytes of the largest read.
    pub piece: usize,
    /// Bytes of the whole source.
    pub size: u64,
    /// Where the next read starts.
    pub at: u64,
}

impl Read for Callback {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let want = out.len().min(self.piece).min(left);
        let Some(read) = self.read.filter(|_| want > 0) else { return Ok(0) };
        // SAFETY: the callback writes at most `want` bytes, which the slice has.
        let n = unsafe { read(self.userdata, out.as_mut_ptr().cast(), self.at, want) }.min(want);
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Callback {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(n) => Some(n),
            SeekFrom::End(n) => self.size.checked_add_signed(n),
            SeekFrom::Current(n) => self.at.checked_add_signed(n),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
