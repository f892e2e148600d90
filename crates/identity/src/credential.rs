//! What kind of thing a caller shows.

use crate::key::PREFIX;

/// What a caller shows, by its first bytes only: neither kind is checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Flyball's own form of a key; read it with [`crate::PresentedKey::read`].
    Key,
    /// Three parts with dots between them, as in a JSON Web Token.
    Token,
    /// Anything else, such as a key that a person chose.
    Other,
}

impl Credential {
    /// Looks at bytes of a header. The longest token is the most that is looked at.
    pub fn of(shown: &[u8]) -> Self {
        if shown.starts_with(PREFIX.as_bytes()) {
            return Self::Key;
        }
        // `{"` in base64url; whatever a header of a token begins with, it is an object with a member.
        let is_token =
            shown.starts_with(b"ey") && shown.iter().filter(|byte| **byte == b'.').count() == 2;
        if is_token { Self::Token } else { Self::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tokens_and_the_rest_are_told_apart() {
        assert_eq!(Credential::of(b"sk-fly-whatever"), Credential::Key);
        assert_eq!(Credential::of(b"eyJh.eyJi.c"), Credential::Token);
        for other in
            [&b""[..], b"sk-proj-1", b"SK-FLY-", b"eyJh.eyJi", b"eyJh.eyJi.c.d.e", b"a.b.c"]
        {
            assert_eq!(Credential::of(other), Credential::Other, "{other:?}");
        }
    }
}
