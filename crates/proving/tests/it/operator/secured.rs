//! Who may talk: certificates and tokens.

use super::rig::{Gateway, Office};
use flyball_gateway::link::Came;
use flyball_gateway::settings::{Operator, OperatorTls};
use flyball_operator::link::{AccessVerdict, Auth, Files, Verify};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// Somebody who signs, with files in this folder.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// A certificate and its key, each in a file of its own.
    fn signs(&self, who: &str) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let files = [format!("{who}.pem"), format!("{who}.key")].map(|file| self.folder.join(file));
        std::fs::write(&files[0], signed.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        files
    }
}

fn tried(gateway: &Gateway, came: Came) -> u64 {
    let place = Came::ALL.iter().position(|one| *one == came).unwrap();
    gateway.link.now().tries[place]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_mutual_tls_only_those_that_the_ca_signed_talk_and_new_certificates_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    let theirs = Authority::new(folder.path(), "theirs");
    let [certificate, key] = ours.signs("operator");
    let files = Files { certificate: certificate.clone(), key, ca: Some(ours.ca()) };
    let office = Office::open(Auth { tls: Some(files), ..Auth::default() }).await;
    let address = format!("https://{}", office.address);
    let with = |ca: PathBuf, [certificate, key]: [PathBuf; 2]| {
        let (certificate, key) = (Some(certificate), Some(key));
        let tls = Some(OperatorTls { ca, certificate, key });
        Gateway::with(&[], Operator { address: address.clone(), tls, token_file: None })
    };
    let strangers = [
        with(ours.ca(), theirs.signs("stranger")),
        with(theirs.ca(), ours.signs("gateway-that-trusts-others")),
    ];
    for stranger in &strangers {
        stranger.until(|now| now.tries[1] > 0).await;
        assert_eq!(tried(stranger, Came::Welcomed), 0);
    }
    drop(strangers);
    let friend = with(ours.ca(), ours.signs("gateway"));
    friend.until(|now| !now.away).await;
    office.report(|report| report.reported_at.is_some()).await;
    drop(friend);
    // Another CA signs from now on; what was read before is used until the files are whole again.
    let [new, new_key] = theirs.signs("operator");
    std::fs::rename(new_key, ours.folder.join("operator.key")).unwrap();
    std::fs::rename(new, &certificate).unwrap();
    let follows = with(theirs.ca(), ours.signs("gateway-that-follows"));
    follows.until(|now| !now.away).await;
}

struct Door;

impl Verify for Door {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = AccessVerdict> + Send + 'a>> {
        let allowed = token == "second";
        Box::pin(async move {
            match allowed {
                true => AccessVerdict::Allowed("system:serviceaccount:flyball:gateway".to_owned()),
                false => AccessVerdict::Denied("not on the list".to_owned()),
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_read_at_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    let office = Office::open(Auth { verify: Some(Arc::new(Door)), ..Auth::default() }).await;
    let address = format!("http://{}", office.address);
    let token_file = Some(file.clone());
    let gateway = Gateway::with(&[], Operator { address, token_file, tls: None });
    gateway.until(|now| now.tries[2] > 0).await;
    assert!(gateway.link.now().away && tried(&gateway, Came::Welcomed) == 0);
    std::fs::write(&file, "second\n").unwrap();
    gateway.until(|now| !now.away).await;
    office.report(|report| report.reported_at.is_some()).await;
}
