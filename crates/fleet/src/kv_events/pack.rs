//! As much MessagePack as a batch needs: lengths, texts, whole numbers and names of blocks; the rest
//! is passed over. Nothing is copied, and nothing that is said is believed before it is there.

use xxhash_rust::xxh3::xxh3_64;

/// Arrays and maps inside each other.
const DEPTH: u32 = 16;

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pack<'a> {
    rest: &'a [u8],
}

/// The beginning of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Array(u32),
    /// So many pairs.
    Map(u32),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Number(u64),
    /// Nothing, a flag, a fraction, an extension.
    Other,
}

impl<'a> Pack<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next value, or the beginning of it: what an array or a map holds follows.
    pub(super) fn next(&mut self) -> Option<Value<'a>> {
        let first = self.byte()?;
        Some(match first {
            0x00..=0x7f => Value::Number(first.into()),
            0x80..=0x8f => Value::Map(u32::from(first & 15)),
            0x90..=0x9f => Value::Array(u32::from(first & 15)),
            0xa0..=0xbf => Value::Text(self.take(usize::from(first & 31))?),
            0xc4..=0xc6 => Value::Bytes(self.sized(1 << (first - 0xc4))?),
            0xc7..=0xc9 => {
                let length = self.number(1 << (first - 0xc7))?;
                self.take(usize::try_from(length).ok()?.checked_add(1)?)?;
                Value::Other
            }
            0xca => self.other(4)?,
            0xcb => self.other(8)?,
            0xcc..=0xcf => Value::Number(self.number(1 << (first - 0xcc))?),
            // Below zero, as Python writes some hashes: the bits are as good a name.
            0xd0..=0xd3 => Value::Number(self.number(1 << (first - 0xd0))?),
            0xd4..=0xd8 => self.other((1 << (first - 0xd4)) + 1)?,
            0xd9..=0xdb => Value::Text(self.sized(1 << (first - 0xd9))?),
            0xdc => Value::Array(self.number(2)? as u32),
            0xdd => Value::Array(self.number(4)? as u32),
            0xde => Value::Map(self.number(2)? as u32),
            0xdf => Value::Map(self.number(4)? as u32),
            0xe0..=0xff => Value::Number(u64::from(first)),
            0xc0..=0xc3 => Value::Other,
        })
    }

    /// Passes over one value with all that it holds.
    pub(super) fn skip(&mut self) -> Option<()> {
        self.skip_to(DEPTH)
    }

    /// The length of the array that follows; `None` if something else does.
    pub(super) fn array(&mut self) -> Option<u32> {
        match self.next()? {
            Value::Array(length) => Some(length),
            _ => None,
        }
    }

    fn skip_to(&mut self, depth: u32) -> Option<()> {
        let inside = match self.next()? {
            Value::Array(length) => u64::from(length),
            Value::Map(pairs) => u64::from(pairs) * 2,
            _ => 0,
        };
        let depth = depth.checked_sub(1)?;
        // Each takes a byte at least, so this ends with the bytes, whatever was said.
        (0..inside).try_for_each(|_| self.skip_to(depth))
    }

    fn other(&mut self, bytes: usize) -> Option<Value<'a>> {
        self.take(bytes).map(|_| Value::Other)
    }

    fn sized(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let length = self.number(bytes)?;
        self.take(usize::try_from(length).ok()?)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let bytes = self.take(bytes)?;
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }
}

impl Value<'_> {
    /// The name of a block: a number, or the bytes of a hash.
    pub(super) fn name(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(bytes) | Self::Text(bytes) => Some(xxh3_64(bytes)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_kinds_are_read() {
        let cases: [(&[u8], Value<'_>); 14] = [
            (b"\x07", Value::Number(7)),
            (b"\xcd\x01\x00", Value::Number(256)),
            (b"\xcf\0\0\0\0\0\0\0\x09", Value::Number(9)),
            (b"\xff", Value::Number(255)),
            (b"\xa2hi", Value::Text(b"hi")),
            (b"\xd9\x02hi", Value::Text(b"hi")),
            (b"\xc4\x02hi", Value::Bytes(b"hi")),
            (b"\x93", Value::Array(3)),
            (b"\xdc\x01\x00", Value::Array(256)),
            (b"\xdd\0\0\0\x05", Value::Array(5)),
            (b"\x82", Value::Map(2)),
            (b"\xde\0\x05", Value::Map(5)),
            (b"\xcb\0\0\0\0\0\0\0\0", Value::Other),
            (b"\xc7\x01\x05x", Value::Other),
        ];
        for (bytes, value) in cases {
            let mut pack = Pack::new(bytes);
            assert_eq!(pack.next(), Some(value), "{bytes:x?}");
            assert!(pack.rest.is_empty(), "{bytes:x?}");
        }
        let mut pack = Pack::new(b"\x82\xa1a\x93\x01\x02\xc0\xa1b\x80\x09");
        assert_eq!((pack.skip(), pack.next()), (Some(()), Some(Value::Number(9))));
    }

    #[test]
    fn nobody_makes_it_work_for_long() {
        // Four thousand million things, of which none is there; and arrays without end.
        assert_eq!(Pack::new(b"\xdd\xff\xff\xff\xff").skip(), None);
        assert_eq!(Pack::new(&[0x91; 100_000]).skip(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut pack = Pack::new(&bytes);
            while pack.skip().is_some() && !pack.rest.is_empty() {}
        }
    }
}
