//! One key of an issuer.

use crate::json::{Json, Members};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// Bits of an RSA modulus. Shorter ones can be broken, and longer ones cost milliseconds each.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// Public exponents: from the one that everybody uses, because smaller ones forgive less, to the last that the verifier takes.
const RSA_EXPONENTS: std::ops::Range<u64> = 65_537..1 << 33;

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAlgorithm {
    /// RSA with PKCS#1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// EdDSA with Ed25519.
    EdDsa,
}

/// A public key, and the one algorithm that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    algorithm: TokenAlgorithm,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point without compression.
    P256([u8; 65]),
    Ed25519([u8; 32]),
}

impl TokenAlgorithm {
    /// By its name in a token or a key; `None` for all that are not verified, `none` among them.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            // RFC 8037, and the name that RFC 9864 prefers.
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl VerifyingKey {
    /// Reads a key; `None` if it is for something else, or too weak.
    pub(crate) fn read(key: &Members) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Json::text);
        // A set that has the private part too has told everybody how to sign.
        let private = ["d", "p", "q", "k"].iter().any(|name| key.contains_key(*name));
        if private || !is_for_signatures(key) {
            return None;
        }
        let (algorithm, material) = match (text("kty")?, text("crv")) {
            ("RSA", None) => (TokenAlgorithm::Rs256, rsa(text("n")?, text("e")?)?),
            ("EC", Some("P-256")) => (TokenAlgorithm::Es256, p256(text("x")?, text("y")?)?),
            ("OKP", Some("Ed25519")) => {
                (TokenAlgorithm::EdDsa, Material::Ed25519(bytes(text("x")?)?.try_into().ok()?))
            }
            _ => return None,
        };
        let algorithm = match key.get("alg") {
            None => algorithm,
            Some(stated) => match (algorithm, TokenAlgorithm::of(stated.text()?)?) {
                (TokenAlgorithm::Rs256, TokenAlgorithm::Ps256) => TokenAlgorithm::Ps256,
                (of_kind, stated) if of_kind == stated => of_kind,
                _ => return None,
            },
        };
        Some(Self { algorithm, material })
    }

    /// What it verifies, and nothing else.
    pub const fn algorithm(&self) -> TokenAlgorithm {
        self.algorithm
    }

    /// Whether the bytes were signed with the private part of this key.
    pub(crate) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { modulus, exponent } => {
                let parameters = match self.algorithm {
                    TokenAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, signed, signature).is_ok()
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(signed, signature)
                    .is_ok()
            }
            Material::Ed25519(key) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(signed, signature).is_ok()
            }
        }
    }
}

fn is_for_signatures(key: &Members) -> bool {
    let of_use = key.get("use").is_none_or(|one| one.text() == Some("sig"));
    let verifies = |list: &[Json]| list.iter().any(|one| one.text() == Some("verify"));
    let of_operations = key.get("key_ops").is_none_or(|all| all.list().is_some_and(verifies));
    of_use && of_operations
}

fn rsa(modulus: &str, exponent: &str) -> Option<Material> {
    let (modulus, exponent) = (number(modulus)?, number(exponent)?);
    let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
    let value = exponent.iter().try_fold(0_u64, |value, byte| {
        value.checked_mul(256).map(|value| value + u64::from(*byte))
    })?;
    let fits = RSA_BITS.contains(&bits) && RSA_EXPONENTS.contains(&value);
    fits.then_some(Material::Rsa { modulus, exponent })
}

fn p256(x: &str, y: &str) -> Option<Material> {
    let (x, y): ([u8; 32], [u8; 32]) = (bytes(x)?.try_into().ok()?, bytes(y)?.try_into().ok()?);
    let mut point = [4; 65];
    point[1..33].copy_from_slice(&x);
    point[33..].copy_from_slice(&y);
    Some(Material::P256(point))
}

/// Without the zeros that some issuers write before it.
fn number(text: &str) -> Option<Vec<u8>> {
    let mut bytes = bytes(text)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    Some(bytes)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
