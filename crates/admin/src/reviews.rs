//! Has the API server judge tokens: whose it is (`TokenReview`), and whether they may ask
//! (`SubjectAccessReview`).
//!
//! Asked is for what the way through the API server takes, `services/proxy` of one port of one Service, so
//! that one Role says who may ask, whichever way they come.

use crate::{AUDIENCE, AccessVerdict, ReviewCache};
use http::Method;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use std::time::Duration;
use tokio::sync::Semaphore;

/// For an answer of the API server.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tokens that are judged at once: who sends made-up ones must not make us flood the API server.
const AT_ONCE: usize = 4;

/// The Service that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewedPlace {
    namespace: String,
    service: String,
}

impl ReviewedPlace {
    /// `namespace/name`.
    pub fn read(text: &str) -> Option<Self> {
        let (namespace, service) = text.split_once('/')?;
        let sound = |part: &str| {
            let of_label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            !part.is_empty() && part.bytes().all(of_label)
        };
        let (namespace, service) = (namespace.to_owned(), service.to_owned());
        (sound(&namespace) && sound(&service)).then_some(Self { namespace, service })
    }
}

/// Judges tokens for one Service.
pub struct Reviews {
    client: Client,
    place: ReviewedPlace,
    verdicts: ReviewCache,
    room: Semaphore,
}

impl Reviews {
    /// By the API server behind this client.
    pub fn new(client: Client, place: ReviewedPlace) -> Self {
        Self { client, place, verdicts: ReviewCache::default(), room: Semaphore::new(AT_ONCE) }
    }

    pub(crate) async fn judge(&self, token: &str, method: &Method) -> AccessVerdict {
        // As the API server would call it on the way through its proxy.
        let verb = match *method {
            Method::GET | Method::HEAD => "get",
            Method::POST => "create",
            _ => "update",
        };
        self.verdicts.or_ask(token, verb, self.ask(token, verb)).await
    }

    async fn ask(&self, token: &str, verb: &str) -> AccessVerdict {
        let review = async {
            let Ok(_place) = self.room.acquire().await else {
                return AccessVerdict::Unknown("token review has stopped".to_owned());
            };
            match whose(&self.client, token, AUDIENCE).await {
                Ok(user) => self.may(user, verb).await,
                Err(verdict) => verdict,
            }
        };
        let late = |_| {
            AccessVerdict::Unknown("the API server did not review the token in time".to_owned())
        };
        tokio::time::timeout(2 * TIMEOUT, review).await.unwrap_or_else(late)
    }

    async fn may(&self, user: UserInfo, verb: &str) -> AccessVerdict {
        let ReviewedPlace { namespace, service } = &self.place;
        let name = user.username.unwrap_or_default();
        let attributes = ResourceAttributes {
            namespace: Some(namespace.clone()),
            resource: Some("services".to_owned()),
            subresource: Some("proxy".to_owned()),
            name: Some(format!("http:{service}:admin")),
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(name.clone()),
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        match reviews.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {
                AccessVerdict::Allowed(name)
            }
            Ok(_) => AccessVerdict::Denied(format!(
                "{name} has no access; hint: it needs `{verb}` on services/proxy of \
                 http:{service}:admin in {namespace}, which the chart grants to rbac.adminClients"
            )),
            Err(error) => AccessVerdict::Unknown(format!(
                "the API server did not say what {name} may do: {error}; hint: this account needs \
                 `create` on subjectaccessreviews"
            )),
        }
    }
}

impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviews").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Whose token it is, if it is for this audience.
pub async fn whose(
    client: &Client,
    token: &str,
    audience: &str,
) -> Result<UserInfo, AccessVerdict> {
    let audiences = Some(vec![audience.to_owned()]);
    let spec = TokenReviewSpec { token: token.to_owned(), audiences };
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviews = Api::<TokenReview>::all(client.clone());
    let params = PostParams::default();
    let answer = match tokio::time::timeout(TIMEOUT, reviews.create(&params, &review)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return Err(AccessVerdict::Unknown(format!(
                "the API server did not review the token: {error}; hint: this account needs \
                 `create` on tokenreviews (system:auth-delegator)"
            )));
        }
        Err(_) => {
            let late = "the API server did not review the token in time".to_owned();
            return Err(AccessVerdict::Unknown(late));
        }
    };
    let status = answer.status.unwrap_or_default();
    if status.authenticated != Some(true) {
        let why = status.error.unwrap_or_else(|| "it is not known".to_owned());
        return Err(AccessVerdict::Denied(format!("the API server refuses the token: {why}")));
    }
    // A server that does not know audiences says yes to a token for anybody.
    if !status.audiences.iter().flatten().any(|one| one == audience) {
        return Err(AccessVerdict::Denied(format!(
            "the token has another audience; hint: request one with the audience {audience}"
        )));
    }
    Ok(status.user.unwrap_or_default())
}
