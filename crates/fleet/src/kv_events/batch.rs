//! What a batch of events says.
//!
//! `[time, events, rank]`; an event is a map with `type` and named fields (vLLM since #42892, June
//! 2026) or an array of the type and the fields in order (before). Of the fields only the names of
//! blocks count, and where the blocks are: those of a slower memory or of a further kind of cache
//! (`group_idx`) come and go by other rules.

use super::pack::{Pack, Value};

/// What became of a block, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Stored(u64),
    Removed(u64),
    Cleared,
}

/// Blocks that one event may name: as many as a cache of a terabyte has.
const BLOCKS: usize = 1 << 20;

/// The events of a batch, as far as they can be read.
pub(super) fn events(batch: &[u8]) -> Vec<Event> {
    let mut found = Vec::new();
    // What cannot be read ends it; what came before counts.
    let _ = read(batch, &mut found);
    found
}

fn read(batch: &[u8], found: &mut Vec<Event>) -> Option<()> {
    let mut pack = Pack::new(batch);
    pack.array()?;
    pack.skip()?;
    for _ in 0..pack.array()? {
        let event = match pack.next()? {
            Value::Map(pairs) => map(&mut pack, pairs)?,
            Value::Array(length) => array(&mut pack, length)?,
            _ => return None,
        };
        event.add_to(found);
    }
    Some(())
}

/// The fields of an event that count.
#[derive(Debug, Default)]
struct BlockEvent<'a> {
    kind: &'a [u8],
    blocks: Vec<u64>,
    elsewhere: bool,
}

impl BlockEvent<'_> {
    fn add_to(self, found: &mut Vec<Event>) {
        let blocks = if self.elsewhere { Vec::new() } else { self.blocks };
        match self.kind {
            b"BlockStored" => found.extend(blocks.into_iter().map(Event::Stored)),
            b"BlockRemoved" => found.extend(blocks.into_iter().map(Event::Removed)),
            b"AllBlocksCleared" => found.push(Event::Cleared),
            _ => {}
        }
    }

    fn medium(&mut self, value: Value<'_>) {
        self.elsewhere |= matches!(value, Value::Text(medium) if medium != b"GPU");
    }
}

fn map<'a>(pack: &mut Pack<'a>, pairs: u32) -> Option<BlockEvent<'a>> {
    let mut event = BlockEvent::default();
    for _ in 0..pairs {
        let Value::Text(name) = pack.next()? else { return None };
        match name {
            b"type" => {
                let Value::Text(kind) = pack.next()? else { return None };
                event.kind = kind;
            }
            b"block_hashes" => event.blocks = names(pack)?,
            b"medium" => event.medium(scalar(pack)?),
            b"group_idx" => event.elsewhere |= matches!(scalar(pack)?, Value::Number(1..)),
            _ => pack.skip()?,
        }
    }
    Some(event)
}

fn array<'a>(pack: &mut Pack<'a>, length: u32) -> Option<BlockEvent<'a>> {
    let mut event = BlockEvent::default();
    // `["BlockStored", hashes, parent, tokens, size, lora, medium, …]`, `["BlockRemoved", hashes,
    // medium]`; the media came later.
    for place in 0..length {
        match (place, event.kind) {
            (0, _) => {
                let Value::Text(kind) = pack.next()? else { return None };
                event.kind = kind;
            }
            (1, b"BlockStored" | b"BlockRemoved") => event.blocks = names(pack)?,
            (6, b"BlockStored") | (2, b"BlockRemoved") => event.medium(scalar(pack)?),
            _ => pack.skip()?,
        }
    }
    Some(event)
}

fn names(pack: &mut Pack<'_>) -> Option<Vec<u64>> {
    let count = pack.array()? as usize;
    // Each takes a byte at least, so a lie about the count ends with the bytes.
    (count <= BLOCKS).then_some(())?;
    (0..count).map(|_| pack.next()?.name()).collect()
}

/// A value that holds no others.
fn scalar<'a>(pack: &mut Pack<'a>) -> Option<Value<'a>> {
    pack.next().filter(|value| !matches!(value, Value::Array(_) | Value::Map(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: &[u8] = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0";

    fn batch(events: &[&[u8]]) -> Vec<u8> {
        let count = [0x90 | events.len() as u8];
        [START, &count, &events.concat(), b"\0"].concat()
    }

    #[test]
    fn both_shapes_say_the_same() {
        let maps = batch(&[
            b"\x84\xa4type\xabBlockStored\xacblock_hashes\x92\x05\xc4\x02hi\xa9token_ids\x93\x01\x02\x03\xa6medium\xa3GPU",
            b"\x83\xa4type\xacBlockRemoved\xacblock_hashes\x91\x05\xa6medium\xc0",
            b"\x81\xa4type\xb0AllBlocksCleared",
        ]);
        let arrays = batch(&[
            b"\x97\xabBlockStored\x92\x05\xc4\x02hi\xc0\x93\x01\x02\x03\x10\xc0\xa3GPU",
            b"\x92\xacBlockRemoved\x91\x05",
            b"\x91\xb0AllBlocksCleared",
        ]);
        let read = events(&maps);
        assert_eq!(read, events(&arrays));
        assert_eq!(read[0], Event::Stored(5));
        assert!(matches!(read[1], Event::Stored(name) if name != 5));
        assert_eq!(read[2..], [Event::Removed(5), Event::Cleared]);
    }

    #[test]
    fn blocks_elsewhere_and_unknown_events_do_not_count() {
        let some = batch(&[
            b"\x83\xa4type\xacBlockRemoved\xacblock_hashes\x91\x05\xa6medium\xa3CPU",
            b"\x83\xa4type\xacBlockRemoved\xacblock_hashes\x91\x05\xa9group_idx\x01",
            b"\x93\xacBlockRemoved\x91\x05\xa3CPU",
            b"\x82\xa4type\xa3New\xa1x\x91\x01",
            b"\x92\xacBlockRemoved\x91\x06",
        ]);
        assert_eq!(events(&some), [Event::Removed(6)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            events(&bytes);
            events(&[START, &bytes].concat());
        }
    }
}
