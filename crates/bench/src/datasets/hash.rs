//! The hash of what is in a file, however it is packed.

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use tar::{Archive, EntryType};

/// The SHA-256 of an unpacked file; of an archive, that of the list of its files with theirs.
pub(super) fn of(path: &Path) -> Result<String> {
    let reading = || format!("reading {}", path.display());
    let file = BufReader::new(File::open(path).with_context(reading)?);
    let name = path.to_string_lossy();
    let hash = match () {
        () if name.ends_with(".tar.gz") => of_archive(MultiGzDecoder::new(file)),
        () if name.ends_with(".gz") => of_all(MultiGzDecoder::new(file)),
        () => of_all(file),
    };
    hash.with_context(reading)
}

fn of_all(mut from: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

fn of_archive(from: impl Read) -> io::Result<String> {
    let mut files = BTreeMap::new();
    let mut archive = Archive::new(from);
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.header().entry_type() == EntryType::Regular {
            let path = entry.path()?.to_string_lossy().into_owned();
            files.insert(path.trim_start_matches("./").to_owned(), of_all(entry)?);
        }
    }
    let lines = files.iter().map(|(path, hash)| format!("{hash}  {path}\n"));
    of_all(lines.collect::<String>().as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write as _;

    fn packed(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.set_cksum();
            builder.append_data(&mut header, name, &name.as_bytes()[name.len() - 1..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn a_hash_does_not_depend_on_how_a_file_was_packed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            of(&path).unwrap()
        };
        let plain = write("a.csv", b"some rows");
        assert_eq!(plain, write("fast.csv.gz", &packed(b"some rows", 1)));
        assert_eq!(plain, write("best.csv.gz", &packed(b"some rows", 9)));
        assert_ne!(plain, write("b.csv", b"other rows"));
        let one = write("one.tar.gz", &packed(&archive(&["b/x", "a/y"]), 1));
        assert_eq!(one, write("other.tar.gz", &packed(&archive(&["./a/y", "b/x"]), 9)));
        assert_ne!(one, write("less.tar.gz", &packed(&archive(&["a/y"]), 9)));
    }
}
