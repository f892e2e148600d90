//! Why nobody is let in, and what may be told of it.

/// Why a key is refused. Clients are not told which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnauthorizedReason {
    /// There is no key, or not in a form that is read.
    Missing,
    /// Nobody has this key.
    Unknown,
    /// Its time has not begun.
    Pending,
    /// Its time has passed.
    Expired,
    /// A person has disabled it.
    Disabled,
    /// Its Tenant is refused, or another key has its id or its hash.
    Refused,
    /// It is no token that is read, or its signature is wrong.
    TokenInvalid,
    /// Nobody trusts whoever issued the token.
    TokenIssuer,
    /// The key of the token is not known for its issuer.
    TokenKey,
    /// The token is for another service.
    TokenAudience,
    /// The token is good, and no Tenant has whoever shows it, or not the one that it names.
    NoMember,
    /// The token belongs to several Tenants, and the request names none.
    SeveralTenants,
}

/// A key that is refused, as far as it may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedKey<'a> {
    /// Why.
    pub why: UnauthorizedReason,
    /// The path of its Tenant, or its name if it has none; empty if nobody has the key.
    pub tenant: &'a str,
    /// Its id, which is no secret; empty if nobody has the key.
    pub id: &'a str,
    /// Of a token its issuer or its service account, as far as that was found out; empty otherwise.
    pub token: &'a str,
}

impl UnauthorizedReason {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Missing,
        Self::Unknown,
        Self::Pending,
        Self::Expired,
        Self::Disabled,
        Self::Refused,
        Self::TokenInvalid,
        Self::TokenIssuer,
        Self::TokenKey,
        Self::TokenAudience,
        Self::NoMember,
        Self::SeveralTenants,
    ];

    /// Its word in metrics and in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Pending => "pending",
            Self::Expired => "expired",
            Self::Disabled => "disabled",
            Self::Refused => "refused",
            Self::TokenInvalid => "token_invalid",
            Self::TokenIssuer => "token_issuer",
            Self::TokenKey => "token_key",
            Self::TokenAudience => "token_audience",
            Self::NoMember => "no_member",
            Self::SeveralTenants => "several_tenants",
        }
    }

    /// Whether it is said of tokens only.
    pub(crate) const fn is_of_tokens(self) -> bool {
        matches!(
            self,
            Self::TokenInvalid
                | Self::TokenIssuer
                | Self::TokenKey
                | Self::TokenAudience
                | Self::NoMember
                | Self::SeveralTenants
        )
    }
}

impl RefusedKey<'static> {
    /// One that nobody has.
    pub(crate) const fn of_nobody(why: UnauthorizedReason) -> Self {
        Self { why, tenant: "", id: "", token: "" }
    }
}
