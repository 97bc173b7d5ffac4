//! A reader that knows how many bytes are left, and says where it was when something failed.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use crate::error::{Error, Rule};

/// Multiple of every element size, so that a full buffer is whole elements.
const BUFFER: usize = 8192;

pub(crate) struct Cursor<'r, R> {
    source: &'r mut R,
    /// Where the gguf data starts in the source; alignment counts from here.
    start: u64,
    /// Position of the next byte to hand out.
    pos: u64,
    end: u64,
    buffer: [u8; BUFFER],
    head: usize,
    tail: usize,
}

impl<'r, R: Read + Seek> Cursor<'r, R> {
    /// From the source's present position to its end.
    pub fn new(source: &'r mut R) -> Result<Self, Error> {
        let start = source.stream_position()?;
        let end = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(start))?;
        Ok(Cursor { source, start, pos: start, end: end.max(start), buffer: [0; BUFFER], head: 0, tail: 0 })
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn pos(&self) -> u64 {
        self.pos
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn left(&self) -> u64 {
        self.end - self.pos
    }

    /// Refuses when fewer than `need` bytes are left.
    pub fn require(&self, need: u64) -> Result<(), Error> {
        if need > self.left() {
            let left = self.left();
            return Err(Error::at(self.pos, Rule::Truncated { need, left }));
        }
        Ok(())
    }

    /// The next `want` bytes, or the first part of them that fits the buffer (a multiple of 8 bytes then).
    pub fn chunk(&mut self, want: u64) -> Result<&[u8], Error> {
        self.require(want)?;
        let want = usize::try_from(want).map_or(BUFFER, |w| w.min(BUFFER));
        if self.tail - self.head < want {
            self.fill(want)?;
        }
        let at = self.head;
        self.head += want;
        self.pos += want as u64;
        Ok(&self.buffer[at..at + want])
    }

    /// Makes at least `want` bytes stand in the buffer.
    fn fill(&mut self, want: usize) -> Result<(), Error> {
        self.buffer.copy_within(self.head..self.tail, 0);
        self.tail -= self.head;
        self.head = 0;
        while self.tail < want {
            // Never past `end`: what lies behind belongs to the caller.
            let ahead = self.left() - self.tail as u64;
            let room = usize::try_from(ahead).map_or(BUFFER, |a| a.min(BUFFER - self.tail));
            match self.source.read(&mut self.buffer[self.tail..self.tail + room]) {
                Ok(0) => {
                    // The source is shorter than it said.
                    let (need, left) = (want as u64, self.tail as u64);
                    return Err(Error::at(self.pos, Rule::Truncated { need, left }));
                }
                Ok(n) => self.tail += n.min(room),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::at(self.pos, Rule::Io(e.kind()))),
            }
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.chunk(N as u64)?);
        Ok(out)
    }

    pub fn bytes4(&mut self) -> Result<[u8; 4], Error> {
        self.array()
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_le_bytes)
    }

    /// Leaves the source at `pos`.
    pub fn leave_at(self, pos: u64) -> Result<(), Error> {
        self.source.seek(SeekFrom::Start(pos))?;
        Ok(())
    }
}
