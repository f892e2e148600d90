//! Files of clients: an object that says what it is, put last, and parts of one size.

use super::StateError;
use crate::forms::FileObject;
use bytes::{Bytes, BytesMut};
use flyball_ledger::store::Store;

/// Bytes of a part; the last has the rest.
pub(crate) const PART_BYTES: usize = 4 << 20;

fn object_path(tenant: &str, id: &str) -> String {
    format!("files/{tenant}/{id}.json")
}

fn part_path(tenant: &str, id: &str, part: u64) -> String {
    format!("parts/{tenant}/{id}/{part:05}")
}

/// What a file is, if there is one.
pub(crate) async fn file_object<S: Store>(
    store: &S,
    tenant: &str,
    id: &str,
) -> Result<Option<FileObject>, StateError> {
    let path = object_path(tenant, id);
    let Some(bytes) = store.get(&path).await? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|why| StateError::damaged(&path, why))
}

/// From now on the file is there.
pub(crate) async fn put_file_object<S: Store>(
    store: &S,
    tenant: &str,
    file: &FileObject,
) -> Result<(), StateError> {
    let path = object_path(tenant, &file.id);
    let bytes = serde_json::to_vec(file).map_err(|why| StateError::damaged(&path, why))?;
    Ok(store.put(&path, bytes.into()).await?)
}

/// The file is gone, whether it was there as a whole, in part, or not at all.
pub(crate) async fn erase<S: Store>(store: &S, tenant: &str, id: &str) -> Result<(), StateError> {
    store.delete(&object_path(tenant, id)).await?;
    for part in store.list(&format!("parts/{tenant}/{id}/")).await? {
        store.delete(&part.path).await?;
    }
    Ok(())
}

/// Writes the parts of a file, with one of them in memory.
#[derive(Debug)]
pub(crate) struct FileWriter {
    tenant: String,
    id: String,
    part: BytesMut,
    written: u64,
}

impl FileWriter {
    pub(crate) fn new(tenant: &str, id: &str) -> Self {
        Self { tenant: tenant.to_owned(), id: id.to_owned(), part: BytesMut::new(), written: 0 }
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.part.len() as u64
    }

    pub(crate) async fn push<S: Store>(
        &mut self,
        store: &S,
        mut bytes: &[u8],
    ) -> Result<(), StateError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PART_BYTES - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = later;
            if self.part.len() == PART_BYTES {
                self.flush(store).await?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and says how many bytes there are.
    pub(crate) async fn finish<S: Store>(mut self, store: &S) -> Result<u64, StateError> {
        if !self.part.is_empty() {
            self.flush(store).await?;
        }
        Ok(self.written)
    }

    async fn flush<S: Store>(&mut self, store: &S) -> Result<(), StateError> {
        let part = self.part.split().freeze();
        let number = self.written / PART_BYTES as u64;
        self.written += part.len() as u64;
        Ok(store.put(&part_path(&self.tenant, &self.id, number), part).await?)
    }
}

/// Reads a file, with the part in memory that was read last.
#[derive(Clone, Debug)]
pub(crate) struct FileReader {
    tenant: String,
    id: String,
    bytes: u64,
    last: Option<(u64, Bytes)>,
}

impl FileReader {
    pub(crate) fn new(tenant: &str, file: &FileObject) -> Self {
        let (tenant, id) = (tenant.to_owned(), file.id.clone());
        Self { tenant, id, bytes: file.bytes, last: None }
    }

    /// How many parts there are.
    pub(crate) const fn parts(&self) -> u64 {
        self.bytes.div_ceil(PART_BYTES as u64)
    }

    pub(crate) async fn part<S: Store>(
        &mut self,
        store: &S,
        number: u64,
    ) -> Result<Bytes, StateError> {
        if let Some((last, bytes)) = &self.last
            && *last == number
        {
            return Ok(bytes.clone());
        }
        self.last = None;
        let path = part_path(&self.tenant, &self.id, number);
        let expected = (self.bytes - number * PART_BYTES as u64).min(PART_BYTES as u64);
        match store.get(&path).await? {
            Some(bytes) if bytes.len() as u64 == expected => {
                self.last = Some((number, bytes.clone()));
                Ok(bytes)
            }
            Some(bytes) => {
                let why = format!("it has {} bytes and should have {expected}", bytes.len());
                Err(StateError::damaged(&path, why))
            }
            None => Err(StateError::damaged(&path, "it is not there")),
        }
    }

    /// So many bytes from there.
    pub(crate) async fn range<S: Store>(
        &mut self,
        store: &S,
        from: u64,
        bytes: u32,
    ) -> Result<Vec<u8>, StateError> {
        let mut found = Vec::with_capacity(bytes as usize);
        let mut at = from;
        while found.len() < bytes as usize {
            let part = self.part(store, at / PART_BYTES as u64).await?;
            let begin = (at % PART_BYTES as u64) as usize;
            let missing = bytes as usize - found.len();
            let end = part.len().min(begin + missing);
            let piece = part.get(begin..end).filter(|piece| !piece.is_empty());
            let piece = piece.ok_or_else(|| StateError::damaged(&self.id, "it is shorter"))?;
            found.extend_from_slice(piece);
            at += piece.len() as u64;
        }
        Ok(found)
    }
}
