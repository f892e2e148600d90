//! Tokens that are right are taken, also those that another implementation has signed.

use super::signer::{
    CLUSTER, ISS, after, b64, claims, header, keys, now, sign, signed, token, verifier, with,
};
use flyball_identity::{Credential, LEEWAY, MAX_TOKEN_BYTES, TokenRefusal};
use serde_json::json;

#[test]
fn tokens_that_openssl_signed_are_taken() {
    let (keys, verifier) = (keys(), verifier());
    for alg in ["RS256", "PS256", "ES256", "EdDSA"] {
        let token = keys["tokens"][alg].as_str().expect("a token");
        assert_eq!(Credential::of(token.as_bytes()), Credential::Token);
        let verified = verifier.verify(token.as_bytes(), now());
        let verified = verified.unwrap_or_else(|refusal| panic!("{alg}: {refusal}"));
        assert_eq!((verified.issuer.as_str(), verified.subject.as_str()), (ISS, "u-1"));
        assert_eq!(verified.expires.as_millis(), 1_800_000_000_000);
        assert!(verified.has("groups", "ml-a"));
    }
}

#[test]
fn tokens_are_taken_with_each_algorithm_and_spelling_that_the_standards_allow() {
    let verifier = verifier();
    let taken = |token: String| verifier.verify(token.as_bytes(), now());
    let right = claims().to_string();
    for (alg, kid, key) in [
        ("RS256", "rsa", "rsa"),
        ("PS256", "pss", "rsa"),
        ("ES256", "ec", "ec"),
        ("EdDSA", "ed", "ed"),
    ] {
        let token = signed(alg, key, header(alg, kid).to_string(), &right);
        assert!(taken(token).is_ok(), "{alg}");
    }
    for header in [
        json!({ "alg": "EdDSA", "kid": "ed" }),
        json!({ "alg": "Ed25519", "kid": "ed", "typ": "at+jwt" }),
        json!({ "alg": "EdDSA", "kid": "ed", "typ": "application/AT+JWT", "x5t": "ignored" }),
    ] {
        assert!(taken(token(&header, claims())).is_ok(), "{header}");
    }
    for audience in [json!("flyball"), json!(["flyball"]), json!(["a", "flyball", "b"])] {
        assert!(
            taken(token(header("EdDSA", "ed"), with("aud", audience.clone()))).is_ok(),
            "{audience}"
        );
    }
    let fraction = token(header("EdDSA", "ed"), with("exp", 1_800_000_000.5));
    assert_eq!(taken(fraction).expect("a token").expires.as_millis(), 1_800_000_000_500);
}

#[test]
fn time_ends_to_the_microsecond_and_begins_a_minute_early() {
    let verifier = verifier();
    let good = token(header("EdDSA", "ed"), claims());
    let last = after(600).saturating_sub(flyball_core::units::Micros::new(1));
    assert!(verifier.verify(good.as_bytes(), last).is_ok());
    assert_eq!(verifier.verify(good.as_bytes(), after(600)), Err(TokenRefusal::Expired));
    for claim in ["nbf", "iat"] {
        let begin =
            token(header("EdDSA", "ed"), with(claim, super::signer::NOW + LEEWAY.whole_seconds()));
        assert!(verifier.verify(begin.as_bytes(), now()).is_ok(), "{claim}");
    }
}

#[test]
fn the_longest_token_is_taken() {
    let verifier = verifier();
    let of = |filler: usize| token(header("EdDSA", "ed"), with("filler", "x".repeat(filler)));
    let spare = MAX_TOKEN_BYTES - of(0).len();
    let longest =
        (0..8).map(|less| of(spare / 4 * 3 - less)).find(|one| one.len() <= MAX_TOKEN_BYTES);
    let longest = longest.expect("one that fits");
    assert!(longest.len() > MAX_TOKEN_BYTES - 8, "{}", longest.len());
    assert!(verifier.verify(longest.as_bytes(), now()).is_ok());
}

#[test]
fn nothing_of_a_token_is_shown() {
    let verifier = verifier();
    let good = token(header("EdDSA", "ed"), with("email", "somebody@example.test"));
    let unverified = flyball_identity::UnverifiedToken::read(good.as_bytes()).expect("a token");
    let verified = verifier.verify(good.as_bytes(), now()).expect("a token");
    let shown = format!("{unverified:?} {verified:?}");
    for part in good.split('.').chain(["somebody", "u-1"]) {
        assert!(!shown.contains(part), "{shown}");
    }
    let unknown = token(header("EdDSA", "secret-kid"), claims());
    let refusal = verifier.verify(unknown.as_bytes(), now()).expect_err("an unknown key");
    assert!(!format!("{refusal} {refusal:?}").contains("secret-kid"));
}

#[test]
fn a_token_of_the_cluster_is_told_from_one_of_somebody_who_calls_himself_so() {
    let verifier = verifier();
    let subject = "system:serviceaccount:ml:nightly";
    let account = |iss: &str| {
        let mut claims = with("sub", subject);
        claims["iss"] = iss.into();
        let verified = verifier.verify(token(header("EdDSA", "ed"), claims).as_bytes(), now());
        let verified = verified.expect("a token");
        verified.service_account().map(|(namespace, name)| format!("{namespace} {name}"))
    };
    assert_eq!(account(CLUSTER).as_deref(), Some("ml nightly"));
    assert_eq!(account(ISS), None);
}

#[test]
fn a_signature_is_over_the_bytes_that_were_sent() {
    // A header with blanks: whoever writes it anew before he verifies would refuse this one.
    let message =
        format!("{}.{}", b64(r#"{ "kid" : "ed" , "alg" : "EdDSA" }"#), b64(claims().to_string()));
    let token = format!("{message}.{}", b64(sign("EdDSA", "ed", message.as_bytes())));
    assert!(verifier().verify(token.as_bytes(), now()).is_ok());
}
