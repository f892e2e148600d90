//! The page that shows the messages, and what happens when the two sides are not of one age.

use super::*;
use prost::Message;
use std::fmt::Write as _;
use std::path::Path;
use syn::{Attribute, Expr, Fields, Item, Lit, Meta, Type};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stream.proto");

const HEAD: &str = "\
// Messages between gateways and the operator. docs/decisions/0031-the-stream.md says why.
//
// Generated from crates/resources/src/stream. `UPDATE=1 cargo test -p flyball-resources` writes it
// anew. Nothing is compiled from it: it is for people, and for programs in other languages.

syntax = \"proto3\";

package flyball.link.v1;

service Link {
  // A gateway sends hello, then its demand every second; the operator answers with directives.
  rpc Talk(stream Up) returns (stream Down);
}
";

/// The text of doc comments, as comments of a `.proto` file.
fn comments(attributes: &[Attribute], indent: &str) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(doc) = &attribute.meta
            && let Expr::Lit(literal) = &doc.value
            && let Lit::Str(line) = &literal.lit
        {
            writeln!(text, "{indent}// {}", line.value().trim()).unwrap();
        }
    }
    text
}

/// The innermost name of a type: `Hello` of `Option<Hello>`.
fn inner(of: &Type) -> String {
    let Type::Path(path) = of else { panic!("a plain type") };
    let last = path.path.segments.last().unwrap();
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inside) => match inside.args.first().unwrap() {
            syn::GenericArgument::Type(of) => inner(of),
            _ => panic!("a type"),
        },
        _ => last.ident.to_string(),
    }
}

/// A field as the derive of prost reads it: its attribute is the only source.
fn field(field: &syn::Field) -> String {
    let (mut kind, mut label, mut tag) = (String::new(), "", String::new());
    let attribute = field.attrs.iter().find(|a| a.path().is_ident("prost")).unwrap();
    attribute
        .parse_nested_meta(|meta| {
            let name = meta.path.get_ident().unwrap().to_string();
            match name.as_str() {
                "tag" => tag = meta.value()?.parse::<syn::LitStr>()?.value(),
                "enumeration" => kind = meta.value()?.parse::<syn::LitStr>()?.value(),
                "optional" => label = "optional ",
                "repeated" => label = "repeated ",
                "message" => kind = inner(&field.ty),
                _ => kind = name,
            }
            Ok(())
        })
        .unwrap();
    // A message is always optional in proto3; only numbers and texts need the word.
    if label == "optional " && kind.starts_with(char::is_uppercase) {
        label = "";
    }
    let name = field.ident.as_ref().unwrap();
    format!("{}  {label}{kind} {name} = {tag};\n", comments(&field.attrs, "  "))
}

fn shouted(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.chars().enumerate() {
        if index > 0 && letter.is_uppercase() {
            text.push('_');
        }
        text.extend(letter.to_uppercase());
    }
    text
}

fn item(item: &Item) -> Option<String> {
    match item {
        Item::Struct(message) => {
            let Fields::Named(fields) = &message.fields else { panic!("named fields") };
            let fields: String = fields.named.iter().map(field).collect();
            let (name, comments) = (&message.ident, comments(&message.attrs, ""));
            Some(format!("\n{comments}message {name} {{\n{fields}}}\n"))
        }
        Item::Enum(kinds) => {
            let prefix = shouted(&kinds.ident.to_string());
            let mut text = format!("\n{}enum {} {{\n", comments(&kinds.attrs, ""), kinds.ident);
            for kind in &kinds.variants {
                let Some((_, Expr::Lit(number))) = &kind.discriminant else { panic!("a number") };
                let Lit::Int(number) = &number.lit else { panic!("a number") };
                let name = shouted(&kind.ident.to_string());
                text += &comments(&kind.attrs, "  ");
                writeln!(text, "  {prefix}_{name} = {number};").unwrap();
            }
            Some(text + "}\n")
        }
        _ => None,
    }
}

#[test]
fn the_page_shows_what_is_sent() {
    let mut text = HEAD.to_owned();
    for source in [include_str!("up.rs"), include_str!("down.rs"), include_str!("quota/mod.rs")] {
        text.extend(syn::parse_file(source).unwrap().items.iter().filter_map(item));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let committed = std::fs::read_to_string(Path::new(FILE)).unwrap_or_default();
    assert!(committed == text, "run: UPDATE=1 cargo test -p flyball-resources");
}

#[test]
fn the_path_is_that_of_the_page() {
    assert_eq!(PATH, "/flyball.link.v1.Link/Talk");
    assert!(HEAD.contains("package flyball.link.v1;") && HEAD.contains("rpc Talk("));
    assert!(HEAD.contains("service Link {"));
}

/// A gateway of a later minor version: it says more.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterHello {
    #[prost(message, optional, tag = "1")]
    protocol: Option<LaterProtocol>,
    #[prost(string, tag = "2")]
    gateway: String,
    #[prost(string, tag = "3")]
    program: String,
    #[prost(uint64, tag = "4")]
    started_ms: u64,
    #[prost(string, repeated, tag = "90")]
    zones: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LaterProtocol {
    #[prost(uint32, tag = "1")]
    major: u32,
    #[prost(uint32, tag = "2")]
    minor: u32,
    #[prost(message, optional, tag = "9")]
    dialect: Option<LaterDialect>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LaterDialect {
    #[prost(double, tag = "1")]
    weight: f64,
}

/// A gateway of an earlier minor version: it says less.
#[derive(Clone, PartialEq, prost::Message)]
struct EarlierModel {
    #[prost(string, tag = "1")]
    model: String,
    #[prost(uint64, tag = "13")]
    arrived: u64,
}

#[test]
fn what_a_later_version_says_more_is_passed_over() {
    let later = LaterHello {
        protocol: Some(LaterProtocol {
            major: MAJOR,
            minor: MINOR + 1,
            dialect: Some(LaterDialect { weight: 0.5 }),
        }),
        gateway: "gateway-0".to_owned(),
        program: "9.9.9".to_owned(),
        started_ms: 7,
        zones: vec!["a".to_owned(), "b".to_owned()],
    };
    let read = Hello::decode(later.encode_to_vec().as_slice()).unwrap();
    assert_eq!((read.gateway.as_str(), read.started_ms), ("gateway-0", 7));
    let protocol = read.protocol.unwrap();
    assert!(protocol.is_understood());
    assert_eq!(protocol, Protocol { major: MAJOR, minor: MINOR + 1 });
    // And the other way round: a later program reads what we say.
    let back = LaterHello::decode(read.encode_to_vec().as_slice()).unwrap();
    assert!(back.zones.is_empty() && back.protocol.unwrap().dialect.is_none());
}

#[test]
fn what_an_earlier_version_does_not_say_is_not_told() {
    let earlier = EarlierModel { model: "m".to_owned(), arrived: 3 };
    let read = ModelDemand::decode(earlier.encode_to_vec().as_slice()).unwrap();
    assert_eq!((read.model.as_str(), read.arrived), ("m", 3));
    assert_eq!((read.wait_ms, read.judged, read.waking), (None, 0, false));
    // An earlier program reads what we say, without what it does not know.
    let ours =
        ModelDemand { model: "m".to_owned(), arrived: 3, judged: 9, ..ModelDemand::default() };
    assert_eq!(EarlierModel::decode(ours.encode_to_vec().as_slice()).unwrap(), earlier);
}

#[test]
fn another_kind_of_message_is_an_empty_one() {
    #[derive(Clone, PartialEq, prost::Message)]
    struct LaterUp {
        #[prost(message, optional, tag = "17")]
        lease: Option<LaterDialect>,
    }
    let later = LaterUp { lease: Some(LaterDialect { weight: 1.0 }) };
    assert_eq!(Up::decode(later.encode_to_vec().as_slice()).unwrap(), Up::default());
    // A state that we do not know is unknown, and no error.
    let load = EndpointLoad { state: 77, ..EndpointLoad::default() };
    let read = EndpointLoad::decode(load.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read.state(), EndpointState::Unknown);
}

#[test]
fn a_mark_is_for_what_it_names() {
    let mark = |name: &str, address: &str| DrainMark {
        name: name.to_owned(),
        address: address.to_owned(),
        since_ms: 0,
    };
    let is_for = |mark: DrainMark| mark.is_for("team/pod-0", "10.0.0.1:8000");
    assert!(is_for(mark("team/pod-0", "")) && is_for(mark("", "10.0.0.1:8000")));
    assert!(is_for(mark("team/pod-0", "10.0.0.1:8000")));
    assert!(!is_for(mark("team/pod-0", "10.0.0.2:8000")), "it came back elsewhere");
    assert!(!is_for(mark("team/pod-1", "")) && !is_for(mark("", "")));
}

#[test]
fn the_largest_messages_fit_and_an_idle_model_costs_little() {
    let n = u64::MAX >> 24;
    let busy = ModelDemand {
        model: "organisation/a-model-with-a-long-name-70b-instruct".to_owned(),
        engines: 100,
        waiting: n,
        held: n,
        backlog_tokens: n,
        backlog_cost: n,
        oldest_ms: n,
        wait_ms: Some(n),
        waking: true,
        in_flight: n,
        unread_tokens: n,
        window: n,
        arrived: n,
        arrived_tokens: n,
        spent_cost: n,
        shed: n,
        wake_calls: n,
        output_tokens: n,
        judged: n,
        missed: n,
        missed_first_token: n,
        missed_between_tokens: n,
        held_tokens: n,
        uncached_tokens: Some(n),
        answered: Some(n),
        paced_tokens: n,
        paced_micros: n,
        namespace: "a-namespace-of-a-team-with-a-long-name".to_owned(),
    };
    let endpoint = EndpointLoad {
        name: "a-namespace/a-model-with-a-name-5d4f8c7b9d-abcde".to_owned(),
        address: "10.128.117.201:8000".to_owned(),
        model: "organisation/a-model-with-a-long-name".to_owned(),
        in_flight: 200,
        state: EndpointState::Open.into(),
        uid: String::new(),
    };
    let models = (busy.encoded_len() + 4) * MAX_MODELS;
    let endpoints = (endpoint.encoded_len() + 4) * MAX_ENDPOINTS;
    assert!(models + endpoints < MAX_BYTES, "{models} + {endpoints}");
    let idle = ModelDemand { model: busy.model, arrived: 5, ..ModelDemand::default() };
    assert!(idle.encoded_len() < 60, "{}", idle.encoded_len());
}
