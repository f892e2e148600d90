//! Asks the API server whose token it is.

use super::auth::{AccessVerdict, Verify};
use flyball_admin::{ReviewCache, whose};
use flyball_resources::stream::AUDIENCE;
use futures::future::BoxFuture;
use kube::Client;
use std::collections::BTreeSet;
use std::fmt;

/// Verifies tokens of service accounts by a `TokenReview` for the audience `flyball-operator`.
pub struct TokenReviews {
    client: Client,
    /// As `system:serviceaccount:namespace:name`.
    allowed: BTreeSet<String>,
    verdicts: ReviewCache,
}

impl TokenReviews {
    /// One that lets these accounts talk, each as `system:serviceaccount:namespace:name`.
    pub fn new(client: Client, allowed: impl IntoIterator<Item = String>) -> Self {
        Self { client, allowed: allowed.into_iter().collect(), verdicts: ReviewCache::default() }
    }

    async fn ask(&self, token: &str) -> AccessVerdict {
        let user = match whose(&self.client, token, AUDIENCE).await {
            Ok(user) => user,
            Err(verdict) => return verdict,
        };
        match user.username {
            Some(name) if self.allowed.contains(&name) => AccessVerdict::Allowed(name),
            name => AccessVerdict::Denied(format!(
                "{} may not connect to this operator; hint: add it to the operator's list of \
                 accounts",
                name.as_deref().unwrap_or("an account without a name")
            )),
        }
    }
}

impl Verify for TokenReviews {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, AccessVerdict> {
        Box::pin(self.verdicts.or_ask(token, AUDIENCE, self.ask(token)))
    }
}

impl fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviews").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    const GATEWAY: &str = "system:serviceaccount:flyball:gateway";

    /// An API server that knows a few tokens.
    async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        assert_eq!(request.uri().path(), "/apis/authentication.k8s.io/v1/tokenreviews");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let reviewed: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(reviewed["spec"]["audiences"], json!([AUDIENCE]));
        let yes = |name: &str, audience: &str| json!({"authenticated": true, "audiences": [audience], "user": {"username": name}});
        let status = match reviewed["spec"]["token"].as_str().unwrap() {
            "gateway" => yes(GATEWAY, AUDIENCE),
            "other" => yes("system:serviceaccount:team:other", AUDIENCE),
            "elsewhere" => yes(GATEWAY, "vault"),
            "broken" => {
                let answer = Response::builder().status(500).body(Full::from("no")).unwrap();
                return Ok(answer);
            }
            _ => json!({"error": "expired"}),
        };
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "metadata": {}, "spec": reviewed["spec"], "status": status});
        Ok(Response::new(Full::from(review.to_string())))
    }

    async fn server() -> (Client, Arc<AtomicU32>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<AtomicU32>::default();
        let count = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                let counted = move |request| {
                    count.fetch_add(1, Ordering::Relaxed);
                    answer(request)
                };
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(counted)),
                );
            }
        });
        let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
        config.default_retry = false;
        (Client::try_from(config).unwrap(), requests)
    }

    #[tokio::test]
    async fn only_listed_accounts_with_a_token_for_us_may_talk_and_verdicts_hold_a_minute() {
        let (client, requests) = server().await;
        let reviews = TokenReviews::new(client, [GATEWAY.to_owned()]);
        for _ in 0..3 {
            assert_eq!(reviews.verify("gateway").await, AccessVerdict::Allowed(GATEWAY.to_owned()));
        }
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        for (token, word) in
            [("other", "team:other"), ("elsewhere", "audience"), ("old", "expired")]
        {
            let AccessVerdict::Denied(why) = reviews.verify(token).await else { panic!("{token}") };
            assert!(why.contains(word), "{why}");
        }
        for _ in 0..2 {
            let verdict = reviews.verify("broken").await;
            assert!(matches!(verdict, AccessVerdict::Unknown(_)), "{verdict:?}");
        }
        assert_eq!(requests.load(Ordering::Relaxed), 6, "what could not be known is asked again");
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(1)).await;
        tokio::time::resume();
        reviews.verify("gateway").await;
        assert_eq!(requests.load(Ordering::Relaxed), 7);
        assert!(!format!("{reviews:?}").contains("kept"));
    }
}
