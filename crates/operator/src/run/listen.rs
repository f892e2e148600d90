//! The door for gateways, open while this operator leads.
//!
//! What gateways say is needed where decisions are carried out. A gateway that comes to an operator which
//! does not lead finds the door shut and comes again, and its Service sends it elsewhere.

use super::OperatorError;
use crate::lead::Fence;
use crate::link::{Auth, Files, GatewayLink, TokenReviews};
use crate::settings::OperatorSettings;
use kube::Client;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// How often it is looked who leads.
const TICK: Duration = Duration::from_millis(250);

/// A door that is open while this operator leads.
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) auth: Auth,
}

impl Door {
    /// Talks to gateways whenever this operator leads; ends only with a problem.
    pub(super) async fn talk(self, link: Arc<GatewayLink>, fence: Fence) -> OperatorError {
        loop {
            until(&fence, true).await;
            let listener = match TcpListener::bind(self.address).await {
                Ok(listener) => listener,
                Err(source) => {
                    let what = "cannot listen on the address for gateways";
                    return OperatorError::Start { what, source };
                }
            };
            let served = Arc::clone(&link).serve(listener, self.auth.clone(), until(&fence, false));
            if let Err(problem) = served.await {
                return OperatorError::Gateways(problem);
            }
        }
    }
}

async fn until(fence: &Fence, leads: bool) {
    while fence.may_write(Instant::now()) != leads {
        tokio::time::sleep(TICK).await;
    }
}

/// How gateways prove who they are.
pub(super) fn auth(settings: &OperatorSettings, client: &Client) -> Auth {
    let gateways = &settings.gateways;
    let files = gateways.certificate.clone().zip(gateways.key.clone());
    let accounts = gateways.accounts.iter();
    let accounts = accounts.map(|one| format!("system:serviceaccount:{}", one.replace('/', ":")));
    let verify = TokenReviews::new(client.clone(), accounts);
    Auth {
        tls: files.map(|(certificate, key)| Files { certificate, key, ca: gateways.ca.clone() }),
        verify: (!gateways.accounts.is_empty()).then(|| Arc::new(verify) as _),
        open: gateways.open,
    }
}
