//! Who may talk.

use super::tls::Files;
use flyball_admin::bearer;
use futures::future::BoxFuture;
use http::HeaderMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tonic::Status;

pub use flyball_admin::AccessVerdict;

/// How gateways prove who they are: by a certificate, by a token, or by both.
#[derive(Clone, Default)]
pub struct Auth {
    /// Certificate and key of this side; with a `ca`, gateways must show a certificate that it signed.
    pub tls: Option<Files>,
    /// Who says whose token it is. Without, none is asked for.
    pub verify: Option<Arc<dyn Verify>>,
    /// Whether everybody may talk who reaches the address. Without it, that is refused unless only this
    /// machine can reach it.
    pub open: bool,
}

/// Says whose token it is, and whether they may talk.
pub trait Verify: Send + Sync {
    /// Judges a token.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, AccessVerdict>;
}

impl Auth {
    /// Whether the door would be open to whoever finds it.
    pub(super) fn is_unguarded(&self, address: SocketAddr) -> bool {
        let by_certificate = self.tls.as_ref().is_some_and(|files| files.ca.is_some());
        let guarded = by_certificate || self.verify.is_some();
        !guarded && !self.open && !address.ip().is_loopback()
    }

    /// Whether a request may talk.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<(), Status> {
        let Some(verify) = &self.verify else { return Ok(()) };
        let Some(token) = bearer(headers) else {
            return Err(Status::unauthenticated(
                "a token is required; hint: set operator.token_file in the gateway's settings and \
                 mount a projected service-account token with the audience flyball-operator",
            ));
        };
        match verify.verify(token).await {
            AccessVerdict::Allowed(_) => Ok(()),
            AccessVerdict::Denied(why) => Err(Status::permission_denied(why)),
            AccessVerdict::Unknown(why) => Err(Status::unavailable(why)),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verify = self.verify.is_some();
        f.debug_struct("Auth")
            .field("tls", &self.tls)
            .field("verify", &verify)
            .field("open", &self.open)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::AUTHORIZATION;
    use tonic::Code;

    struct Door;

    impl Verify for Door {
        fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, AccessVerdict> {
            let verdict = match token {
                "good" => {
                    AccessVerdict::Allowed("system:serviceaccount:flyball:gateway".to_owned())
                }
                "bad" => AccessVerdict::Denied("no".to_owned()),
                _ => AccessVerdict::Unknown("away".to_owned()),
            };
            Box::pin(async { verdict })
        }
    }

    #[tokio::test]
    async fn a_token_is_asked_for_judged_and_not_knowing_is_not_no() {
        let auth = Auth { verify: Some(Arc::new(Door)), ..Auth::default() };
        let with = |value: &'static str| {
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
        };
        assert!(auth.admit(&with("Bearer good")).await.is_ok());
        assert!(auth.admit(&with("bearer good")).await.is_ok());
        for (headers, code) in [
            (with("Bearer bad"), Code::PermissionDenied),
            (with("Bearer maybe"), Code::Unavailable),
            (with("Basic good"), Code::Unauthenticated),
            (with("Bearer "), Code::Unauthenticated),
            (HeaderMap::new(), Code::Unauthenticated),
        ] {
            assert_eq!(auth.admit(&headers).await.unwrap_err().code(), code, "{headers:?}");
        }
        assert!(Auth::default().admit(&HeaderMap::new()).await.is_ok());
    }

    #[test]
    fn a_door_without_a_guard_is_refused_unless_said_or_nobody_outside_reaches_it() {
        let outside: SocketAddr = "0.0.0.0:9091".parse().unwrap();
        let inside: SocketAddr = "127.0.0.1:9091".parse().unwrap();
        let plain = Auth::default();
        assert!(plain.is_unguarded(outside) && !plain.is_unguarded(inside));
        assert!(!Auth { open: true, ..Auth::default() }.is_unguarded(outside));
        let token = Auth { verify: Some(Arc::new(Door)), ..Auth::default() };
        assert!(!token.is_unguarded(outside));
        let files = |ca: Option<&str>| Files {
            certificate: "c".into(),
            key: "k".into(),
            ca: ca.map(Into::into),
        };
        let tls = |ca| Auth { tls: Some(files(ca)), ..Auth::default() };
        assert!(tls(None).is_unguarded(outside), "its own certificate says nothing about others");
        assert!(!tls(Some("ca")).is_unguarded(outside));
    }
}
