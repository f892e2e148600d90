//! The bytes of an entry: version and kind, numbers of seven bits a byte, texts with their length.

use super::{
    GpuTimeRecord, JournalStart, Judged, MAX_COUNT, MAX_NAME, UsageClass, UsageEntry, UsageOpen,
    UsageParties, UsageRecord, UsageRow, VERSION,
};
use flyball_core::units::Timestamp;

/// Why bytes are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageProblem {
    /// They end too early.
    #[error("the entry is cut short")]
    Short,
    /// There are more of them than the entry has.
    #[error("{0} bytes follow the entry")]
    Rest(usize),
    /// Somebody newer wrote it.
    #[error("version {0}; this program reads up to version {VERSION}")]
    Version(u8),
    /// A value that cannot be.
    #[error("{0} cannot be")]
    Value(&'static str),
}

const BEGIN: u8 = 0;
const OPEN: u8 = 1;
const CLOSE: u8 = 2;
const GPU_TIME: u8 = 3;
const ROW: u8 = 4;
const ENDED: u8 = 5;

const ESTIMATED: u8 = 1;
const PRICED: u8 = 2;
const MET: u8 = 4;
const MISSED: u8 = 8;

impl<'a> UsageEntry<'a> {
    /// Appends its bytes.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.push(VERSION);
        match self {
            Self::Begin(begin) => {
                into.push(BEGIN);
                text(into, begin.table);
                text(into, begin.source);
                number(into, begin.sequence);
                number(into, begin.boot);
            }
            Self::Open(open) => {
                into.push(OPEN);
                number(into, open.request);
                parties(into, &open.parties);
                number(into, open.started.as_micros());
            }
            Self::Close(record) => close(into, record),
            Self::GpuTime(record) => gpu_time(into, record),
            Self::Ended(request) => {
                into.push(ENDED);
                number(into, *request);
            }
            Self::Row(row) => {
                into.push(ROW);
                signed(into, row.start);
                signed(into, row.end);
                into.push(u8::from(row.estimated));
                number(into, row.texts.len() as u64);
                row.texts.iter().for_each(|one| text(into, one));
                number(into, row.measures.len() as u64);
                row.measures.iter().for_each(|one| signed(into, *one));
            }
        }
    }

    /// Reads all of these bytes as one entry.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, UsageProblem> {
        let mut from = Bytes(bytes);
        let version = from.byte()?;
        if version == 0 || version > VERSION {
            return Err(UsageProblem::Version(version));
        }
        let entry = match from.byte()? {
            BEGIN => Self::Begin(JournalStart {
                table: from.text()?,
                source: from.text()?,
                sequence: from.number()?,
                boot: from.number()?,
            }),
            OPEN => Self::Open(UsageOpen {
                request: from.number()?,
                parties: from.parties()?,
                started: Timestamp::from_micros(from.number()?),
            }),
            CLOSE => Self::Close(from.close()?),
            GPU_TIME => Self::GpuTime(from.gpu_time()?),
            ROW => Self::Row(from.row()?),
            ENDED => Self::Ended(from.number()?),
            _ => return Err(UsageProblem::Value("the kind of the entry")),
        };
        if from.0.is_empty() { Ok(entry) } else { Err(UsageProblem::Rest(from.0.len())) }
    }
}

fn close(into: &mut Vec<u8>, record: &UsageRecord<'_>) {
    into.push(CLOSE);
    number(into, record.request);
    parties(into, &record.parties);
    number(into, record.started.as_micros());
    // The end as a length: three bytes for most requests instead of eight.
    number(into, record.ended.as_micros().saturating_sub(record.started.as_micros()));
    number(into, record.input_tokens.min(MAX_COUNT));
    number(into, record.cached_tokens.min(MAX_COUNT));
    number(into, record.output_tokens.min(MAX_COUNT));
    number(into, record.cost_units.min(MAX_COUNT));
    let judged = match record.judged {
        Judged::Not => 0,
        Judged::Met => MET,
        Judged::Missed => MISSED,
    };
    let estimated = if record.estimated { ESTIMATED } else { 0 };
    into.push(judged | estimated | priced(record.list_pico));
    price(into, record.list_pico, record.currency);
}

fn gpu_time(into: &mut Vec<u8>, record: &GpuTimeRecord<'_>) {
    into.push(GPU_TIME);
    for one in [record.pool, record.accelerator, record.purchase, record.used_for] {
        text(into, one);
    }
    for one in [record.resource, record.variant, record.tenant] {
        text(into, one);
    }
    number(into, record.started.as_micros());
    number(into, record.ended.as_micros().saturating_sub(record.started.as_micros()));
    for one in [record.gpu_micros, record.replica_micros, record.steps, record.repeated_steps] {
        number(into, one.min(MAX_COUNT));
    }
    into.push(priced(record.list_pico));
    price(into, record.list_pico, record.currency);
}

const fn priced(price: Option<i64>) -> u8 {
    if price.is_some() { PRICED } else { 0 }
}

fn price(into: &mut Vec<u8>, price: Option<i64>, currency: &str) {
    if let Some(pico) = price {
        signed(into, pico);
        text(into, currency);
    }
}

fn parties(into: &mut Vec<u8>, parties: &UsageParties<'_>) {
    into.push(parties.class as u8);
    text(into, parties.tenant);
    text(into, parties.key);
    text(into, parties.model);
    text(into, parties.variant);
}

fn number(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Small numbers of either sign stay small.
fn signed(into: &mut Vec<u8>, value: i64) {
    number(into, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn text(into: &mut Vec<u8>, value: &str) {
    let mut end = value.len().min(MAX_NAME);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    number(into, end as u64);
    into.extend_from_slice(&value.as_bytes()[..end]);
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Result<u8, UsageProblem> {
        let (first, rest) = self.0.split_first().ok_or(UsageProblem::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, UsageProblem> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(UsageProblem::Value("a number of more than 64 bits"))
    }

    fn count(&mut self) -> Result<u64, UsageProblem> {
        let count = self.number()?;
        if count > MAX_COUNT { Err(UsageProblem::Value("a count that large")) } else { Ok(count) }
    }

    fn signed(&mut self) -> Result<i64, UsageProblem> {
        let value = self.number()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn text(&mut self) -> Result<&'a str, UsageProblem> {
        let length = self.number()?;
        if length > MAX_NAME as u64 {
            return Err(UsageProblem::Value("a name that long"));
        }
        let (text, rest) = self.0.split_at_checked(length as usize).ok_or(UsageProblem::Short)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| UsageProblem::Value("a name that is no text"))
    }

    fn parties(&mut self) -> Result<UsageParties<'a>, UsageProblem> {
        let class = UsageClass::ALL.get(usize::from(self.byte()?)).copied();
        Ok(UsageParties {
            class: class.ok_or(UsageProblem::Value("the class"))?,
            tenant: self.text()?,
            key: self.text()?,
            model: self.text()?,
            variant: self.text()?,
        })
    }

    fn price(&mut self, flags: u8) -> Result<(Option<i64>, &'a str), UsageProblem> {
        if flags & PRICED == 0 {
            return Ok((None, ""));
        }
        Ok((Some(self.signed()?), self.text()?))
    }

    fn times(&mut self) -> Result<(Timestamp, Timestamp), UsageProblem> {
        let (started, took) = (self.number()?, self.number()?);
        Ok((Timestamp::from_micros(started), Timestamp::from_micros(started.saturating_add(took))))
    }

    fn close(&mut self) -> Result<UsageRecord<'a>, UsageProblem> {
        let (request, parties) = (self.number()?, self.parties()?);
        let (started, ended) = self.times()?;
        let (input_tokens, cached_tokens) = (self.count()?, self.count()?);
        let (output_tokens, cost_units) = (self.count()?, self.count()?);
        let flags = self.byte()?;
        let judged = match flags & (MET | MISSED) {
            0 => Judged::Not,
            MET => Judged::Met,
            MISSED => Judged::Missed,
            _ => return Err(UsageProblem::Value("both met and missed")),
        };
        let (list_pico, currency) = self.price(flags)?;
        let estimated = flags & ESTIMATED != 0;
        Ok(UsageRecord {
            request,
            parties,
            started,
            ended,
            input_tokens,
            cached_tokens,
            output_tokens,
            estimated,
            judged,
            cost_units,
            list_pico,
            currency,
        })
    }

    fn gpu_time(&mut self) -> Result<GpuTimeRecord<'a>, UsageProblem> {
        let (pool, accelerator) = (self.text()?, self.text()?);
        let (purchase, used_for) = (self.text()?, self.text()?);
        let (resource, variant, tenant) = (self.text()?, self.text()?, self.text()?);
        let (started, ended) = self.times()?;
        let (gpu_micros, replica_micros) = (self.count()?, self.count()?);
        let (steps, repeated_steps) = (self.count()?, self.count()?);
        let flags = self.byte()?;
        let (list_pico, currency) = self.price(flags)?;
        Ok(GpuTimeRecord {
            pool,
            accelerator,
            purchase,
            used_for,
            resource,
            variant,
            tenant,
            started,
            ended,
            gpu_micros,
            replica_micros,
            steps,
            repeated_steps,
            list_pico,
            currency,
        })
    }

    fn row(&mut self) -> Result<UsageRow<'a>, UsageProblem> {
        let (start, end) = (self.signed()?, self.signed()?);
        let estimated = self.byte()? != 0;
        let texts = self.short(Self::text)?;
        let measures = self.short(Self::signed)?;
        Ok(UsageRow { start, end, estimated, texts, measures })
    }

    /// A list of no more things than a table has columns.
    fn short<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, UsageProblem>,
    ) -> Result<Vec<T>, UsageProblem> {
        let length = self.number()?;
        if length > 64 {
            return Err(UsageProblem::Value("a row of so many columns"));
        }
        (0..length).map(|_| one(self)).collect()
    }
}
