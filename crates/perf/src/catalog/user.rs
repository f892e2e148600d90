//! The user's own file: `[[accelerator]]` and `[[price]]` tables in TOML.
//!
//! A part needs an id, its memory, its bandwidth and one peak; or `like`, and then only what is
//! different. The keys are those of the built-in files, in the same units.

use super::accelerators::{GIB, GIGA, TERA, bytes, check, check_names};
use super::problems::{CatalogError, Reader};
use super::toml_table::{TomlTable, line_at, unknown_key};
use super::user_price::{ANY, PRICE_KEYS, price};
use super::{Catalog, Offer};
use crate::hardware::{Accelerator, Link, Peaks};
use flyball_core::units::Gpus;
use toml::de::DeTable;

/// The keys of `[[accelerator]]`.
pub(super) const ACCELERATOR_KEYS: &[&str] = &[
    "id",
    "like",
    "replace",
    "aliases",
    "vendor",
    "architecture",
    "form",
    "year",
    "memory_gb",
    "memory_gib",
    "bandwidth_tb_s",
    "half_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "scale_up_link",
    "scale_up_gb_s",
    "scale_up_domain",
    "node_gpus",
    "scale_out_link",
    "scale_out_gb_s",
    "tdp_w",
    "notes",
    "source",
];

const TABLES: &[&str] = &["accelerator", "price"];

/// Adds what the file has.
pub(super) fn add(catalog: Catalog, text: &str, file: &str) -> Result<Catalog, CatalogError> {
    let mut reader = Reader::new(file);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.line = error.span().map_or(1, |span| line_at(text, span.start));
        reader.wrong(format!("not TOML: {}", error.message()), "fix the syntax");
    }
    if !errors.is_empty() {
        // What was recovered would only give problems that are not there.
        return reader.finish(catalog);
    }
    let root = root.get_ref();
    for (key, _) in root.iter().filter(|(key, _)| !TABLES.contains(&key.get_ref().as_ref())) {
        reader.line = line_at(text, key.span().start);
        unknown_key(&mut reader, key.get_ref(), TABLES);
    }
    let mut catalog = catalog;
    for table in TomlTable::all(&mut reader, text, root, "accelerator") {
        table.only(&mut reader, ACCELERATOR_KEYS);
        if let Some(part) = accelerator(&mut reader, &table, &catalog) {
            put_accelerator(&mut reader, &table, &mut catalog, part);
        }
    }
    let mut offers: Vec<Offer> = Vec::new();
    for table in TomlTable::all(&mut reader, text, root, "price") {
        table.only(&mut reader, PRICE_KEYS);
        let Some(offer) = price(&mut reader, &table, &catalog) else { continue };
        if offers.iter().any(|other| other.is_same_order(&offer)) {
            table.begin(&mut reader);
            let what = format!("a second price of {}", offer.order());
            reader.wrong(what, "keep one, or distinguish them by sku");
        }
        offers.push(offer);
    }
    catalog.prices.retain(|old| {
        !offers
            .iter()
            .any(|new| old.is_same_order(new) || new.sku == ANY && old.is_same_purchase(new))
    });
    catalog.prices.extend(offers);
    reader.finish(catalog)
}

fn accelerator(
    reader: &mut Reader<'_>,
    table: &TomlTable<'_, '_>,
    catalog: &Catalog,
) -> Option<Accelerator> {
    let like = table.text(reader, "like");
    let base = match like.map(|name| catalog.accelerator(&name)) {
        None => None,
        Some(Ok(part)) => Some(part.clone()),
        Some(Err(unknown)) => {
            let near: Vec<&str> = unknown.near.iter().map(|id| id.as_str()).collect();
            let mend = match near.is_empty() {
                true => "write the id of a part that `flyball gpus` lists".to_owned(),
                false => format!("write one of {}", near.join(", ")),
            };
            reader.wrong(format!("like is `{}`, which no part is called", unknown.name), mend);
            return None;
        }
    };
    let id = table.required(reader, "id", "\"a-name\"").and_then(|id| reader.id("id", &id));
    let positive = Reader::positive;
    let usable = table.read(reader, "memory_gib", positive);
    let advertised = table.read(reader, "memory_gb", positive);
    let bandwidth = table.read(reader, "bandwidth_tb_s", positive);
    let half = table.read(reader, "half_tflops", positive);
    let fp8 = table.read(reader, "fp8_tflops", positive);
    let fp4 = table.read(reader, "fp4_tflops", positive);
    if base.is_none() {
        for (key, example) in
            [("memory_gib", "79.2"), ("bandwidth_tb_s", "3.35"), ("half_tflops", "989")]
        {
            table.need(reader, key, example);
        }
    }
    let mut part = match base {
        // Names and notes are about the other part.
        Some(base) => Accelerator { id: id?, aliases: Vec::new(), notes: String::new(), ..base },
        None => {
            let peak = Peaks { half: half? * TERA, fp8: None, fp4: None };
            let memory = bytes(usable?, GIB);
            Accelerator {
                id: id?,
                memory,
                usable_memory: memory,
                peak,
                bandwidth: bandwidth? * TERA,
                ..bare()
            }
        }
    };
    if let Some(usable) = usable {
        (part.usable_memory, part.memory) = (bytes(usable, GIB), bytes(usable, GIB));
    }
    if let Some(advertised) = advertised {
        part.memory = bytes(advertised, GIGA);
    }
    part.bandwidth = bandwidth.map_or(part.bandwidth, |rate| rate * TERA);
    if half.is_some() || fp8.is_some() || fp4.is_some() {
        // Peaks belong together: one that was not written is not that of another part.
        let half = half.map_or(part.peak.half, |peak| peak * TERA);
        let [fp8, fp4] = [fp8, fp4].map(|peak| peak.map(|peak| peak * TERA));
        part.peak = Peaks { half, fp8, fp4 };
    }
    rest(reader, table, &mut part);
    table.begin(reader);
    check(reader, &part);
    Some(part)
}

/// What may be left out, and is then as in `like` or as in [`bare`].
fn rest(reader: &mut Reader<'_>, table: &TomlTable<'_, '_>, part: &mut Accelerator) {
    let texts = [
        ("vendor", &mut part.vendor),
        ("architecture", &mut part.architecture),
        ("form", &mut part.form),
        ("scale_up_link", &mut part.scale_up.name),
        ("scale_out_link", &mut part.scale_out.name),
        ("notes", &mut part.notes),
    ];
    for (key, place) in texts {
        if let Some(text) = table.text(reader, key) {
            *place = text;
        }
    }
    let file = reader.file();
    let own = table.text(reader, "source").unwrap_or_else(|| file.to_owned());
    part.source = match part.source.is_empty() {
        true => own,
        false => format!("{own}; the rest: {}", part.source),
    };
    part.aliases = table.list(reader, "aliases");
    let links = [("scale_up_gb_s", &mut part.scale_up), ("scale_out_gb_s", &mut part.scale_out)];
    for (key, link) in links {
        if let Some(rate) = table.read(reader, key, Reader::positive) {
            link.bandwidth = rate * GIGA;
        }
    }
    part.year = table.read(reader, "year", Reader::whole).unwrap_or(part.year);
    part.tdp_watts = table.read(reader, "tdp_w", Reader::whole).or(part.tdp_watts);
    if let Some(gpus) = table.read(reader, "node_gpus", Reader::whole) {
        part.node_gpus = Gpus::new(gpus);
        if part.scale_up.name.starts_with("PCIe") {
            // PCIe joins what is in the host.
            part.scale_up_domain = part.node_gpus;
        }
    }
    if let Some(gpus) = table.read(reader, "scale_up_domain", Reader::whole) {
        part.scale_up_domain = Gpus::new(gpus);
    }
}

/// A part about which nothing was said: one per host, and the slowest links in use.
///
/// One per host, because a plan that spreads a model over accelerators that are not there is
/// worse than one that does not.
fn bare() -> Accelerator {
    let id = "bare".parse().expect("a plain word is a name");
    Accelerator {
        id,
        aliases: Vec::new(),
        vendor: String::new(),
        architecture: String::new(),
        form: String::new(),
        year: 0,
        memory: Default::default(),
        usable_memory: Default::default(),
        bandwidth: 0.0,
        peak: Peaks { half: 0.0, fp8: None, fp4: None },
        scale_up: Link { name: "PCIe4 x16".to_owned(), bandwidth: 32.0 * GIGA },
        scale_up_domain: Gpus::new(1),
        node_gpus: Gpus::new(1),
        scale_out: Link { name: "Ethernet 25G".to_owned(), bandwidth: 3.1 * GIGA },
        tdp_watts: None,
        measured: None,
        kernels: None,
        notes: String::new(),
        source: String::new(),
    }
}

fn put_accelerator(
    reader: &mut Reader<'_>,
    table: &TomlTable<'_, '_>,
    catalog: &mut Catalog,
    mut part: Accelerator,
) {
    let replace = table.switch(reader, "replace");
    table.begin(reader);
    let there = catalog.accelerators.iter().position(|other| other.id == part.id);
    match there {
        Some(_) if !replace => {
            let what = format!("there is already an accelerator {}", part.id);
            reader.wrong(what, "choose another id, or write replace = true");
        }
        _ => {
            let old = there.map(|place| catalog.accelerators.remove(place));
            check_names(reader, &part, &catalog.accelerators);
            // Who says h100 still means this part.
            part.aliases.extend(old.into_iter().flat_map(|old| old.aliases));
            catalog.accelerators.push(part);
        }
    }
}
