//! Who belongs to a Tenant by a token, as `identity` holds tokens against it.

use crate::tenant::TenantMember;
use flyball_identity::MemberRule;

impl TenantMember {
    /// Its rules: one for claims, one for each service account. Whoever fits one of them belongs to the Tenant.
    pub fn rules(&self) -> Vec<MemberRule> {
        if self.service_accounts.is_empty() {
            let (issuer, claims) = (self.issuer.clone(), self.claims.clone());
            return vec![MemberRule::Claims { issuer, claims }];
        }
        let accounts = self.service_accounts.iter().map(|account| MemberRule::ServiceAccount {
            namespace: account.namespace.clone(),
            name: account.name.clone(),
        });
        accounts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_is_a_rule_of_claims_or_one_for_each_account() {
        let rules = |member| serde_json::from_value::<TenantMember>(member).unwrap().rules();
        let claims =
            json!({ "issuer": "https://login.example.test", "claims": { "groups": ["ml"] } });
        let one = MemberRule::Claims {
            issuer: "https://login.example.test".into(),
            claims: [("groups".into(), vec!["ml".into()])].into(),
        };
        assert_eq!(rules(claims), [one]);
        let accounts = json!({ "issuer": "kubernetes", "serviceAccounts": [
            { "namespace": "ml", "name": "*" }, { "namespace": "jobs", "name": "nightly" },
        ] });
        let account = |namespace: &str, name: &str| MemberRule::ServiceAccount {
            namespace: namespace.into(),
            name: name.into(),
        };
        assert_eq!(rules(accounts), [account("ml", "*"), account("jobs", "nightly")]);
    }
}
