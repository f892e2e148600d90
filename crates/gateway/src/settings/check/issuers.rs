//! What contradicts about issuers of tokens.

use super::doubles;
use crate::settings::problem::{Code, SettingProblem};
use crate::settings::{IssuerSettings, TenantsSettings};
use http::Uri;
use std::net::IpAddr;

/// What contradicts.
pub(super) fn check(settings: &TenantsSettings) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    let issuers = &settings.issuers;
    if !settings.watch && !issuers.is_empty() {
        problems.push(contradiction(
            "tenants.issuers".to_owned(),
            "are set, but tenants.watch is not true: nobody belongs to a Tenant",
            "set watch = true in [tenants], or remove them",
        ));
    }
    let names = issuers.iter().map(|one| one.issuer.as_deref().unwrap_or_default());
    problems.extend(doubles("tenants.issuers", "issuer", names));
    for (index, issuer) in issuers.iter().enumerate() {
        one(&format!("tenants.issuers[{index}]"), issuer, &mut problems);
    }
    let clusters = issuers.iter().enumerate().filter(|(_, issuer)| issuer.kubernetes);
    for (index, _) in clusters.skip(1) {
        problems.push(contradiction(
            format!("tenants.issuers[{index}].kubernetes"),
            "is true for a second issuer; a cluster has one",
            "remove one of the two",
        ));
    }
    problems
}

fn one(path: &str, issuer: &IssuerSettings, problems: &mut Vec<SettingProblem>) {
    let mut no = |path: String, what: &str, hint: &str| {
        problems.push(contradiction(path, what, hint));
    };
    let ways = [issuer.jwks_url.is_some(), issuer.jwks_file.is_some(), issuer.kubernetes];
    if ways.into_iter().filter(|way| *way).count() != 1 {
        let what = "exactly one of jwks_url, jwks_file and kubernetes must be set";
        return no(path.to_owned(), what, "say in one way where its keys are");
    }
    if !issuer.kubernetes {
        // A Tenant could not name another one.
        if !issuer.issuer.as_deref().is_some_and(|name| name.starts_with("https://")) {
            let hint = "give the claim `iss` of its tokens, which begins with https://";
            no(format!("{path}.issuer"), "is missing, or no https address", hint);
        }
        if issuer.audience.is_none() {
            let what = "is missing: tokens for any other service would do";
            let hint = "give the name under which the issuer knows this gateway";
            no(format!("{path}.audience"), what, hint);
        }
    }
    if let Some(what) = issuer.jwks_url.as_deref().and_then(wrong_url) {
        let hint = "use https; http is for 127.0.0.1 and [::1] only";
        no(format!("{path}.jwks_url"), what, hint);
    }
    let encrypted = issuer.jwks_url.as_deref().is_some_and(|url| url.starts_with("https:"));
    if issuer.ca.is_some() && !encrypted {
        let what = "is set, but no jwks_url begins with https";
        no(format!("{path}.ca"), what, "remove it");
    }
}

/// Whoever can change what comes from there lets in whom they like.
fn wrong_url(url: &str) -> Option<&'static str> {
    let Ok(uri) = url.parse::<Uri>() else { return Some("is no address") };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Some("has a user or a password, which would be shown");
    }
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_here = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => None,
        Some("http") if is_here => None,
        _ => Some("is neither https nor http on this machine"),
    }
}

fn contradiction(path: String, what: &str, hint: &str) -> SettingProblem {
    SettingProblem::new(Code::Contradiction, path, what, hint)
}
