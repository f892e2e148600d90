//! One name for a machine that Kubernetes and a bill call differently.

/// The same text for a node's provider id and for the resource id of its cloud's bill.
///
/// `aws:///us-east-1a/i-0abc` and `arn:aws:ec2:us-east-1:1:instance/i-0abc` are `i-0abc`; `gce://p/z/n` and
/// `//compute.googleapis.com/projects/p/zones/z/instances/n` are `p/z/n`; Azure's ids are paths whose case differs.
pub fn resource_name(id: &str) -> String {
    let lower = id.to_lowercase();
    if let Some(at) = lower.find("/subscriptions/") {
        return lower[at..].to_owned();
    }
    if let Some(rest) = lower.strip_prefix("gce://") {
        return rest.to_owned();
    }
    let parts: Vec<&str> = lower.rsplit('/').collect();
    match parts[..] {
        [name, "instances", zone, "zones", project, "projects", ..] => {
            format!("{project}/{zone}/{name}")
        }
        [name, ..] if !name.is_empty() => name.to_owned(),
        _ => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_its_line_have_one_name() {
        let pairs = [
            ("aws:///us-east-1a/i-0ABC", "arn:aws:ec2:us-east-1:123:instance/i-0abc"),
            ("aws:///us-east-1a/i-0abc", "i-0abc"),
            ("gce://p/us-c1/n", "//compute.googleapis.com/projects/p/zones/us-c1/instances/n"),
            (
                "azure:///subscriptions/1/resourceGroups/MC/providers/Microsoft.Compute/virtualMachineScaleSets/a/virtualMachines/3",
                "/subscriptions/1/resourcegroups/mc/providers/microsoft.compute/virtualmachinescalesets/a/virtualmachines/3",
            ),
            ("node-7", "node-7"),
        ];
        for (node, line) in pairs {
            assert_eq!(resource_name(node), resource_name(line));
        }
        assert_ne!(resource_name("gce://p/z/n"), resource_name("gce://p/y/n"));
        assert_eq!(resource_name("x/"), "x/");
    }
}
