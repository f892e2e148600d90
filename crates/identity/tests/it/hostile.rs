//! Everything that a stranger might try, with the reason for which it is refused. A rule that goes makes a row fail.

use super::signer::{
    ISS, NOW, OTHER_ISS, b64, claims, header, keys, now, raw, sign, signed, token, verifier, with,
    without,
};
use flyball_identity::{KeyRefusal, MAX_TOKEN_BYTES, NewKey, PresentedKey, TokenRefusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What it is, what is sent, and why it is refused.
type Row<T> = (&'static str, Vec<u8>, T);

fn right_key() -> String {
    NewKey::make(&std::array::from_fn(|index| (index * 7 % 256) as u8)).expose().to_owned()
}

/// With another character, and the checksum that belongs to it.
fn with_character(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut key = right_key().into_bytes();
    key.splice(at..at + bytes.len(), bytes.iter().copied());
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = crc32fast::hash(&key[..61]);
    for place in (62..68).rev() {
        key[place] = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    key
}

fn keys_of_strangers() -> Vec<Row<KeyRefusal>> {
    use KeyRefusal::{Character, Checksum, Length, Prefix};
    let right = right_key();
    let edited = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut key = right.clone().into_bytes();
        edit(&mut key);
        key
    };
    let other = |byte: u8| if byte == b'7' { b'8' } else { b'7' };
    vec![
        ("nothing", vec![], Prefix),
        ("only the prefix", b"sk-fly-".to_vec(), Length),
        ("a key of another vendor", right.replacen("fly", "pro", 1).into(), Prefix),
        ("the prefix in capitals", right.replacen("sk-fly", "SK-FLY", 1).into(), Prefix),
        ("a blank before it", format!(" {right}").into(), Prefix),
        ("quotes around it", format!("\"{right}\"").into(), Prefix),
        ("the scheme before it", format!("Bearer {right}").into(), Prefix),
        ("its own hash", NewKey::make(&[1; 40]).hash().to_hex().into(), Prefix),
        ("a line end behind it", format!("{right}\n").into(), Length),
        ("a blank behind it", format!("{right} ").into(), Length),
        ("cut by one", right[..67].into(), Length),
        ("one character more", format!("{right}0").into(), Length),
        ("two keys", format!("{right}{right}").into(), Length),
        ("a megabyte", format!("sk-fly-{}", "a".repeat(1 << 20)).into(), Length),
        ("another character of the secret", edited(&|key| key[30] = other(key[30])), Checksum),
        ("another character of the id", edited(&|key| key[8] = other(key[8])), Checksum),
        ("another character of the checksum", edited(&|key| key[67] = other(key[67])), Checksum),
        ("two characters changed about", edited(&|key| key.swap(20, 45)), Checksum),
        ("the secret backwards", edited(&|key| key[18..61].reverse()), Checksum),
        ("all in small letters", edited(&|key| key[7..].make_ascii_lowercase()), Checksum),
        ("a checksum of zeros", edited(&|key| key[62..].fill(b'0')), Checksum),
        ("a checksum of more than 32 bits", edited(&|key| key[62..].fill(b'z')), Checksum),
        ("a - in the secret", with_character(30, b"-"), Character),
        ("a _ in the secret", with_character(30, b"_"), Character),
        ("no separator behind the id", with_character(17, b"a"), Character),
        ("no separator before the checksum", edited(&|key| key[61] = b'a'), Character),
        ("a - in the id", with_character(9, b"-"), Character),
        ("a zero byte", with_character(30, &[0]), Character),
        ("a letter that is none in ASCII", with_character(30, "é".as_bytes()), Character),
        ("a byte that is no text", with_character(10, &[0xff]), Character),
        ("a sign in the checksum", edited(&|key| key[62] = b'+'), Character),
    ]
}

/// A token that would be right if its header were.
fn headed(header: Value) -> Vec<u8> {
    token(header, claims()).into()
}

/// A token that would be right if its claims were.
fn claiming(claims: impl ToString) -> Vec<u8> {
    token(header("EdDSA", "ed"), claims).into()
}

fn plus(name: &str, value: impl Into<Value>) -> Vec<u8> {
    let mut header = header("EdDSA", "ed");
    header[name] = value.into();
    headed(header)
}

fn right() -> String {
    token(header("EdDSA", "ed"), claims())
}

/// The parts of a right token, changed and put together again.
fn parts(change: impl FnOnce(&mut [String; 3])) -> Vec<u8> {
    let mut parts: [String; 3] =
        right().split('.').map(str::to_owned).collect::<Vec<_>>().try_into().expect("three parts");
    change(&mut parts);
    parts.join(".").into()
}

/// Signed by one algorithm while the header says another.
fn as_if(alg: &str, key: &str, header: Value) -> Vec<u8> {
    signed(alg, key, header.to_string(), claims().to_string()).into()
}

/// With these bytes for a signature.
fn with_signature(alg: &str, kid: &str, signature: &[u8]) -> Vec<u8> {
    let message = format!("{}.{}", b64(header(alg, kid).to_string()), b64(claims().to_string()));
    format!("{message}.{}", b64(signature)).into()
}

fn shapes() -> Vec<Row<TokenRefusal>> {
    use TokenRefusal::{DuplicateMember, Encoding, NotJson, Parts, TooLong};
    let right = right();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
    let standard = |parts: &mut [String; 3]| {
        // What differs between the two alphabets, signed and all.
        let claims = with("filler", "???>>>~~~").to_string();
        let message = format!("{}.{}", parts[0], b64(claims));
        parts[1] =
            message.split('.').nth(1).unwrap_or_default().replace('_', "/").replace('-', "+");
        parts[2] = b64(sign("EdDSA", "ed", format!("{}.{}", parts[0], parts[1]).as_bytes()));
    };
    let twice = r#"{"alg":"none","alg":"EdDSA","kid":"ed"}"#;
    let text = claims().to_string();
    let both = |more: &str| claiming(text.replacen('{', &format!("{{{more},"), 1));
    vec![
        ("nothing", vec![], Parts),
        ("a word", b"token".to_vec(), Parts),
        ("two parts", right.rsplit_once('.').expect("parts").0.into(), Parts),
        ("four parts", format!("{right}.").into(), Parts),
        ("an encrypted token", b"eyJh.a.b.c.d".to_vec(), Parts),
        ("three empty parts", b"..".to_vec(), NotJson),
        ("longer than any", claiming(with("filler", "x".repeat(MAX_TOKEN_BYTES))), TooLong),
        ("padding", parts(|parts| parts[2] += "=="), Encoding),
        ("the other alphabet", parts(standard), Encoding),
        (
            "bits behind the last byte",
            parts(|parts| {
                let last = parts[2].pop().expect("a signature");
                // Of 86 characters the last has four bits that belong to no byte.
                parts[2].push(if last == 'A' { 'B' } else { char::from(last as u8 + 1) });
            }),
            Encoding,
        ),
        ("a line end inside", parts(|parts| parts[1].insert(4, '\n')), Encoding),
        ("a line end behind it", format!("{right}\n").into(), Encoding),
        ("a byte that is no text", [right.as_bytes(), &[0xff]].concat(), Encoding),
        ("a header that is no JSON", signed("EdDSA", "ed", "alg", &text).into(), NotJson),
        ("a header that is a list", signed("EdDSA", "ed", "[]", &text).into(), NotJson),
        ("claims that are a text", claiming("\"sub\""), NotJson),
        ("claims and something behind them", claiming(format!("{text}{{}}")), NotJson),
        ("claims with a mark before them", claiming(format!("\u{feff}{text}")), NotJson),
        ("claims that are deep", claiming(deep), NotJson),
        (
            "claims that are no text",
            signed("EdDSA", "ed", header("EdDSA", "ed").to_string(), b"{\"a\":\"\xff\"}").into(),
            NotJson,
        ),
        ("two algorithms", signed("EdDSA", "ed", twice, &text).into(), DuplicateMember),
        ("two issuers", both("\"iss\":\"https://evil.test\""), DuplicateMember),
        ("two subjects, one in escapes", both(r#""\u0073ub":"admin""#), DuplicateMember),
        ("two members deep inside", both(r#""x":{"y":[{"a":1,"a":2}]}"#), DuplicateMember),
    ]
}

fn headers() -> Vec<Row<TokenRefusal>> {
    use TokenRefusal::{Algorithm, HeaderMember, KeyId, Type};
    let alg = |name: Value| headed(json!({ "alg": name, "kid": "ed" }));
    let unsigned =
        format!("{}.{}.", b64(r#"{"alg":"none","kid":"ed"}"#), b64(claims().to_string()));
    let own = json!({ "kty": "RSA", "n": keys()["stranger"]["n"], "e": "AQAB" });
    vec![
        ("no signature", unsigned.into(), Algorithm),
        ("no algorithm by another spelling", alg("nOnE".into()), Algorithm),
        ("an empty algorithm", alg("".into()), Algorithm),
        ("an algorithm that is missing", headed(json!({ "kid": "ed" })), Algorithm),
        ("an algorithm that is a number", alg(256.into()), Algorithm),
        ("an algorithm that is a list", alg(json!(["EdDSA"])), Algorithm),
        ("the public key as a secret", as_if("HS256", "rsa", header("HS256", "rsa")), Algorithm),
        ("a longer shared secret", alg("HS512".into()), Algorithm),
        ("a hash that is not verified", as_if("RS256", "rsa", header("RS384", "rsa")), Algorithm),
        ("a curve that is not verified", as_if("ES256", "ec", header("ES384", "ec")), Algorithm),
        ("an algorithm in small letters", alg("eddsa".into()), Algorithm),
        ("an algorithm with a blank", alg("EdDSA ".into()), Algorithm),
        ("no key named", headed(json!({ "alg": "EdDSA" })), KeyId),
        ("a key without a name", headed(header("EdDSA", "")), KeyId),
        ("a key named by a number", headed(json!({ "alg": "EdDSA", "kid": 1 })), KeyId),
        ("a very long name of a key", headed(header("EdDSA", &"k".repeat(300))), KeyId),
        ("extensions that must be understood", plus("crit", json!(["exp"])), HeaderMember("crit")),
        ("no extension that must be understood", plus("crit", json!([])), HeaderMember("crit")),
        ("claims that are not encoded", plus("b64", false), HeaderMember("b64")),
        ("compressed claims", plus("zip", "DEF"), HeaderMember("zip")),
        ("an encryption", plus("enc", "A256GCM"), HeaderMember("enc")),
        ("a token inside", plus("cty", "JWT"), HeaderMember("cty")),
        ("an address of keys", plus("jku", "https://evil.test/jwks"), HeaderMember("jku")),
        ("an address of a certificate", plus("x5u", "https://evil.test/c"), HeaderMember("x5u")),
        ("a certificate", plus("x5c", json!(["MII"])), HeaderMember("x5c")),
        (
            "a key of its own, which has signed it",
            as_if("RS256", "stranger", json!({ "alg": "RS256", "kid": "rsa", "jwk": own })),
            HeaderMember("jwk"),
        ),
        ("a token for logging out", plus("typ", "logout+jwt"), Type),
        ("a token about events", plus("typ", "secevent+jwt"), Type),
        ("a type that is a number", plus("typ", 1), Type),
    ]
}

fn signatures() -> Vec<Row<TokenRefusal>> {
    use TokenRefusal::{IssuerUnknown, KeyAlgorithm, Signature};
    let unknown = |issuer: &str| TokenRefusal::KeyUnknown { issuer: issuer.to_owned() };
    let flipped = |alg: &str, kid: &str, key: &str| {
        let message =
            format!("{}.{}", b64(header(alg, kid).to_string()), b64(claims().to_string()));
        let mut signature = sign(alg, key, message.as_bytes());
        signature[20] ^= 1;
        with_signature(alg, kid, &signature)
    };
    let odd = |name: &str| keys()["tokens_odd"][name].as_str().expect("a token").into();
    let longer = [&[0], &raw(&Value::from(b64([7; 256])))[..]].concat();
    let swapped = parts(|parts| {
        parts[1] = b64(with("sub", "admin").to_string());
    });
    vec![
        ("PSS with a key for PKCS#1", as_if("PS256", "rsa", header("PS256", "rsa")), KeyAlgorithm),
        ("PKCS#1 with a key for PSS", as_if("RS256", "rsa", header("RS256", "pss")), KeyAlgorithm),
        ("EdDSA with an RSA key", as_if("EdDSA", "ed", header("EdDSA", "rsa")), KeyAlgorithm),
        ("ES256 with an Ed25519 key", as_if("ES256", "ec", header("ES256", "ed")), KeyAlgorithm),
        ("a key of nobody", headed(header("EdDSA", "new")), unknown(ISS)),
        ("a path for a key", headed(header("EdDSA", "../../../dev/null")), unknown(ISS)),
        ("a question for a key", headed(header("EdDSA", "ed' OR '1'='1")), unknown(ISS)),
        (
            "the key of another issuer that is trusted",
            as_if("RS256", "stranger", header("RS256", "theirs")),
            unknown(ISS),
        ),
        (
            "an issuer that another's key stands for",
            claiming(with("iss", OTHER_ISS)),
            unknown(OTHER_ISS),
        ),
        ("a stranger's signature", as_if("RS256", "stranger", header("RS256", "rsa")), Signature),
        ("a signature that is empty", parts(|parts| parts[2].clear()), Signature),
        ("a signature that is cut", parts(|parts| parts[2].truncate(80)), Signature),
        ("one bit of an Ed25519 signature", flipped("EdDSA", "ed", "ed"), Signature),
        ("one bit of an RSA signature", flipped("RS256", "rsa", "rsa"), Signature),
        ("one bit of a PSS signature", flipped("PS256", "pss", "rsa"), Signature),
        ("one bit of a P-256 signature", flipped("ES256", "ec", "ec"), Signature),
        ("another subject under the signature", swapped, Signature),
        (
            "another header under the signature",
            parts(|parts| parts[0] = b64(r#"{"kid":"ed","alg":"EdDSA"}"#)),
            Signature,
        ),
        ("a P-256 signature in DER", odd("der"), Signature),
        ("an RSA signature with another hash", odd("sha512"), Signature),
        ("a PSS signature with another salt", odd("salt"), Signature),
        ("a P-256 signature of zeros", with_signature("ES256", "ec", &[0; 64]), Signature),
        ("a P-256 signature of 65 bytes", with_signature("ES256", "ec", &[1; 65]), Signature),
        ("an Ed25519 signature of zeros", with_signature("EdDSA", "ed", &[0; 64]), Signature),
        (
            "an RSA signature with a zero before it",
            with_signature("RS256", "rsa", &longer),
            Signature,
        ),
        ("an RSA signature of ones", with_signature("RS256", "rsa", &[0xff; 256]), Signature),
        ("an issuer that nobody trusts", claiming(with("iss", "https://evil.test")), IssuerUnknown),
        ("an issuer with a / behind it", claiming(with("iss", format!("{ISS}/"))), IssuerUnknown),
        ("an issuer in capitals", claiming(with("iss", ISS.to_uppercase())), IssuerUnknown),
        (
            "an issuer that begins like one that is trusted",
            claiming(with("iss", format!("{ISS}.evil.test"))),
            IssuerUnknown,
        ),
    ]
}

fn claims_of_strangers() -> Vec<Row<TokenRefusal>> {
    use TokenRefusal::{Audience, Claim, Expired, Missing, NotJson, NotYetValid};
    let claim = |name: &str, value: Value| claiming(with(name, value));
    let endless = claims().to_string().replace(&(NOW + 600).to_string(), "1e999");
    vec![
        ("no issuer", claiming(without("iss")), Missing("iss")),
        ("an issuer that is a list", claim("iss", json!([ISS])), Claim("iss")),
        ("no subject", claiming(without("sub")), Missing("sub")),
        ("an empty subject", claim("sub", "".into()), Claim("sub")),
        ("a subject that is a number", claim("sub", 0.into()), Claim("sub")),
        ("a subject of 256 bytes", claim("sub", "s".repeat(256).into()), Claim("sub")),
        ("no audience", claiming(without("aud")), Missing("aud")),
        ("another audience", claim("aud", "grafana".into()), Audience),
        ("other audiences", claim("aud", json!(["a", "b"])), Audience),
        ("no audience in the list", claim("aud", json!([])), Audience),
        ("an audience that begins like ours", claim("aud", "flyball-test".into()), Audience),
        ("an audience in capitals", claim("aud", "FLYBALL".into()), Audience),
        ("audiences in one text", claim("aud", "a flyball".into()), Audience),
        ("an audience that is a number", claim("aud", 1.into()), Claim("aud")),
        ("an audience that is null", claim("aud", Value::Null), Claim("aud")),
        ("a list with a number", claim("aud", json!(["flyball", 1])), Claim("aud")),
        ("no end", claiming(without("exp")), Missing("exp")),
        ("an end that is null", claim("exp", Value::Null), Claim("exp")),
        ("an end that is a text", claim("exp", (NOW + 600).to_string().into()), Claim("exp")),
        ("an end that is true", claim("exp", true.into()), Claim("exp")),
        ("an end before 1970", claim("exp", (-1).into()), Claim("exp")),
        ("an end in milliseconds", claim("exp", ((NOW + 600) * 1_000).into()), Claim("exp")),
        ("an end beyond all numbers", claiming(endless), NotJson),
        ("an end that has just come", claim("exp", NOW.into()), Expired),
        ("an end an hour ago", claim("exp", (NOW - 3_600).into()), Expired),
        ("an end in 1970", claim("exp", 0.into()), Expired),
        ("a beginning in 61 s", claim("nbf", (NOW + 61).into()), NotYetValid),
        ("a beginning that is a text", claim("nbf", "now".into()), Claim("nbf")),
        ("issued in 61 s", claim("iat", (NOW + 61).into()), NotYetValid),
        ("issued at null", claim("iat", Value::Null), Claim("iat")),
    ]
}

#[test]
fn every_hostile_key_is_refused_for_its_reason() {
    assert!(PresentedKey::read(right_key().as_bytes()).is_ok(), "a right one is taken");
    let rows = keys_of_strangers();
    for (what, shown, why) in &rows {
        let refused = PresentedKey::read(shown).expect_err(what);
        assert_eq!(refused, *why, "{what}");
        assert!(!refused.to_string().contains(&right_key()[20..30]), "{what}");
    }
    names_differ(rows.iter().map(|row| row.0), 30);
}

#[test]
fn every_hostile_token_is_refused_for_its_reason() {
    let verifier = verifier();
    assert!(verifier.verify(right().as_bytes(), now()).is_ok(), "a right one is taken");
    let rows: Vec<Row<TokenRefusal>> =
        [shapes(), headers(), signatures(), claims_of_strangers()].into_iter().flatten().collect();
    for (what, shown, why) in &rows {
        match verifier.verify(shown, now()) {
            Ok(_) => panic!("{what}: it was taken"),
            Err(refusal) => assert_eq!(refusal, *why, "{what}"),
        }
    }
    names_differ(rows.iter().map(|row| row.0), 110);
}

/// Counts the rows: a table that lost some would say nothing.
#[expect(clippy::print_stderr, reason = "the count is for who makes figures")]
fn names_differ<'a>(names: impl Iterator<Item = &'a str>, at_least: usize) {
    let all: Vec<&str> = names.collect();
    let different: BTreeSet<&&str> = all.iter().collect();
    assert!(all.len() >= at_least, "{} rows", all.len());
    eprintln!("hostile, refused for its own reason: {}", all.len());
    assert!(different.len() + 3 >= all.len(), "rows of one name say little");
}
