//! Takes a file in, part by part.

use super::Api;
use super::answer::{ApiBody, ApiError, json};
use super::callers::CallingTenant;
use super::create::EXPIRY;
use super::multipart::{FormPart, Multipart};
use crate::forms::{FileObject, Purpose, seconds};
use crate::state::{FileWriter, erase, put_file_object};
use flyball_ledger::store::Store;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::time::Duration;

/// Bytes of an input file.
const MAX_FILE: u64 = 200 << 20;

/// Bytes of a field that is no file.
const MAX_FIELD: usize = 4 << 10;

/// Bytes of a name.
const MAX_NAME: usize = 255;

/// Something comes at least so often.
const SILENCE: Duration = Duration::from_secs(60);

/// What a form says.
#[derive(Debug, Default)]
struct Form {
    purpose: String,
    anchor: String,
    seconds: String,
    filename: Option<String>,
}

/// The field that is being read.
enum Field {
    File(FileWriter),
    Text(String, Vec<u8>),
}

impl<S: Store + 'static> Api<S> {
    pub(super) async fn upload(
        &self,
        tenant: &CallingTenant,
        request: Request<Incoming>,
    ) -> Result<Response<ApiBody>, ApiError> {
        let Ok(_place) = self.uploads.try_acquire() else {
            let message = "Too many files come at once. Try again.";
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", message));
        };
        let id = self.new_id()?;
        let file = id.file();
        let received = self.receive(tenant, &file, request).await;
        let done = match received {
            Ok((form, bytes)) => form.file(&file, bytes, seconds(id.at), self.retention_seconds),
            Err(error) => Err(error),
        };
        match done {
            Ok(object) => {
                put_file_object(&*self.store, &tenant.folder, &object).await?;
                Ok(json(&object))
            }
            Err(error) => {
                // What a client leaves half-sent goes with the next sweep.
                let _ = erase(&*self.store, &tenant.folder, &file).await;
                Err(error)
            }
        }
    }

    /// Everything that a form has, and the bytes of its file.
    async fn receive(
        &self,
        tenant: &CallingTenant,
        id: &str,
        request: Request<Incoming>,
    ) -> Result<(Form, u64), ApiError> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut parts = Multipart::of(kind.unwrap_or_default()).map_err(damaged)?;
        let (mut form, mut field, mut bytes) = (Form::default(), None, None);
        let mut body = request.into_body();
        loop {
            while let Some(part) = parts.next().map_err(damaged)? {
                match (part, &mut field) {
                    (FormPart::End, _) => {
                        self.end(&mut form, field.take(), &mut bytes).await?;
                        let bytes = bytes.filter(|bytes| *bytes > 0);
                        let missing = || {
                            ApiError::wrong(
                                "file",
                                "missing_required_parameter",
                                "Missing required parameter: 'file'.",
                            )
                        };
                        return Ok((form, bytes.ok_or_else(missing)?));
                    }
                    (FormPart::Field { name, filename }, _) => {
                        self.end(&mut form, field.take(), &mut bytes).await?;
                        field = Some(if name == "file" && bytes.is_none() {
                            form.filename = filename;
                            Field::File(FileWriter::new(&tenant.folder, id))
                        } else {
                            Field::Text(name, Vec::new())
                        });
                    }
                    (FormPart::Data(data), Some(Field::File(writer))) => {
                        if writer.bytes() + data.len() as u64 > MAX_FILE {
                            let message = format!("A file has at most {MAX_FILE} bytes.");
                            let status = StatusCode::PAYLOAD_TOO_LARGE;
                            return Err(ApiError::new(status, "file_too_large", &message));
                        }
                        writer.push(&*self.store, &data).await?;
                    }
                    (FormPart::Data(data), Some(Field::Text(_, text))) => {
                        if text.len() + data.len() > MAX_FIELD {
                            return Err(damaged("a field is too long"));
                        }
                        text.extend_from_slice(&data);
                    }
                    (FormPart::Data(_), None) => {}
                }
            }
            match tokio::time::timeout(SILENCE, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        parts.push(&data);
                    }
                }
                _ => return Err(damaged("it did not come whole")),
            }
        }
    }

    /// A field is over.
    async fn end(
        &self,
        form: &mut Form,
        field: Option<Field>,
        bytes: &mut Option<u64>,
    ) -> Result<(), ApiError> {
        match field {
            None => {}
            Some(Field::File(writer)) => *bytes = Some(writer.finish(&*self.store).await?),
            Some(Field::Text(name, text)) => {
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                match name.as_str() {
                    "purpose" => form.purpose = text,
                    "expires_after[anchor]" => form.anchor = text,
                    "expires_after[seconds]" => form.seconds = text,
                    _ => {
                        let message = format!("Unknown parameter: '{}'.", name.escape_default());
                        return Err(ApiError::wrong("body", "unknown_parameter", &message));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Form {
    fn file(
        self,
        id: &str,
        bytes: u64,
        now: u64,
        retention_seconds: u64,
    ) -> Result<FileObject, ApiError> {
        if self.purpose != Purpose::Batch.word() {
            let message = "The purpose must be 'batch': other files have no use here.";
            return Err(ApiError::wrong("purpose", "invalid_purpose", message));
        }
        let lasts = match (self.anchor.as_str(), self.seconds.parse::<u64>()) {
            ("", _) if self.seconds.is_empty() => retention_seconds,
            ("created_at", Ok(seconds)) if EXPIRY.contains(&seconds) => seconds,
            _ => {
                let message = "It must be 3600 to 2592000 seconds from created_at.";
                return Err(ApiError::wrong("expires_after", "invalid_value", message));
            }
        };
        let name = self.filename.unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        let mut file = FileObject::new(id.to_owned(), name, Purpose::Batch, now);
        (file.bytes, file.expires_at) = (bytes, Some(now + lasts));
        Ok(file)
    }
}

fn damaged(why: impl ToString) -> ApiError {
    let message = format!("The form cannot be read: {}.", why.to_string());
    ApiError::wrong("body", "invalid_form", &message)
}
