//! What holds where a file says nothing.

use super::{
    GatewaySettingsFile, Key, KubernetesSettings, ModelSettings, Priority, Recovery, RequestLimits,
    ResponseCache, RoutingSetting, Telemetry, TenantsSettings, Timeouts, WakerSettings,
};
use flyball_engines::Engine;
use std::net::SocketAddr;

impl Default for GatewaySettingsFile {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin: SocketAddr::from(([127, 0, 0, 1], 9090)),
            admin_clients: flyball_admin::AdminClients::default(),
            threads: 0,
            open: false,
            tls: None,
            keys: Vec::new(),
            models: Vec::new(),
            kubernetes: KubernetesSettings::default(),
            tenants: TenantsSettings::default(),
            splits: Vec::new(),
            limits: RequestLimits::default(),
            timeouts: Timeouts::default(),
            collector: None,
            waker: None,
            operator: None,
            recovery: Recovery::default(),
            response_cache: ResponseCache::default(),
            telemetry: Telemetry::default(),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            held_bytes: 1 << 30,
            head_bytes: 64 << 10,
            connections: 20_000,
            in_flight: 20_000,
            queued: 4_096,
            streams_per_connection: 256,
            answers: 16,
        }
    }
}

/// Load balancers that send to pods are told through an API of their cloud, and go on for a while. Of
/// those that were measured the slowest counts: an AWS NLB with IP targets sends new connections for two
/// minutes after a target was taken out, whatever its deregistration delay (aws-load-balancer-controller
/// 2366, aws/containers-roadmap 470). An ALB takes some 25 s, and Google has pods with endpoint groups
/// wait for a minute.
const SETTLE_MS: u64 = 120_000;

/// As long as engines have by default to finish what they have.
const DRAIN_MS: u64 = 120_000;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head_ms: 10_000,
            body_idle_ms: 30_000,
            body_ms: 60_000,
            connect_ms: 1_000,
            first_byte_ms: 120_000,
            answer_idle_ms: 60_000,
            client_idle_ms: 60_000,
            keep_alive_ms: 75_000,
            settle_ms: SETTLE_MS,
            drain_ms: DRAIN_MS,
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { access_log: true, otlp: None, sampled_per_thousand: 10, audit_log: None }
    }
}

impl Default for Key {
    fn default() -> Self {
        Self {
            name: String::new(),
            sha256: String::new(),
            requests_per_minute: None,
            weight: 1,
            priority: Priority::default(),
            cache_group: None,
        }
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            endpoints: Vec::new(),
            service: None,
            pool: None,
            engine: Engine::default(),
            queue_ms: 10_000,
            // As long as official clients of OpenAI wait for a request of the service tier `flex`.
            batch_ms: 600_000,
            hold_ms: 300_000,
            policy: RoutingSetting::default(),
            shadow: Vec::new(),
            cache_responses: false,
            kv_events: None,
            engine_keys: Vec::new(),
            known_as: None,
            first_token_ms: None,
            between_tokens_ms: None,
            prices: None,
            model_service: None,
        }
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self { hedge_per_thousand: 20, continue_streams: true }
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self { bytes: 64 << 20, ttl_s: 3_600 }
    }
}

impl Default for WakerSettings {
    fn default() -> Self {
        Self { url: None, folder: None, again_ms: 120_000 }
    }
}
