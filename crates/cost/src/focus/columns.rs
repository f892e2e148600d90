//! The 65 columns of Cost and Usage in FOCUS 1.4, with what each may hold.

/// How firmly a column belongs into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeatureLevel {
    Mandatory,
    /// Where the thing exists at all; we write all of them.
    Conditional,
    Recommended,
}

/// What stands in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellFormat {
    Text,
    Decimal,
    /// A unit price.
    NotNegative,
    Time,
    /// Three capital letters of ISO 4217; virtual currencies are out since 1.4.
    NationalCurrency,
    Unit,
    /// A flat JSON object.
    KeyValues,
    OneOf(&'static [&'static str]),
}

/// What the standard says about a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFacts {
    pub name: &'static str,
    pub level: FeatureLevel,
    pub may_be_null: bool,
    pub format: CellFormat,
}

macro_rules! columns {
    ($( $name:ident $level:ident $null:literal $format:expr; )+) => {
        /// A column of the standard, in its order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FocusColumn { $( $name, )+ }

        impl FocusColumn {
            pub const ALL: &[Self] = &[ $( Self::$name, )+ ];

            pub const fn facts(self) -> ColumnFacts {
                match self {
                    $( Self::$name => ColumnFacts {
                        name: stringify!($name),
                        level: FeatureLevel::$level,
                        may_be_null: $null,
                        format: $format,
                    }, )+
                }
            }
        }
    };
}

use CellFormat::{Decimal, KeyValues, NationalCurrency, NotNegative, OneOf, Text, Time, Unit};

const USED: CellFormat = OneOf(&["Used", "Unused"]);
const CATEGORIES: CellFormat = OneOf(&["Usage", "Purchase", "Tax", "Credit", "Adjustment"]);
const FREQUENCIES: CellFormat = OneOf(&["One-Time", "Recurring", "Usage-Based"]);
const PRICINGS: CellFormat = OneOf(&["Standard", "Dynamic", "Committed", "Other"]);

columns! {
    AllocatedMethodId Conditional true Text;
    AllocatedMethodDetails Recommended true KeyValues;
    AllocatedResourceId Conditional true Text;
    AllocatedResourceName Conditional true Text;
    AllocatedTags Conditional true KeyValues;
    AvailabilityZone Recommended true Text;
    BilledCost Mandatory false Decimal;
    BillingAccountId Mandatory false Text;
    BillingAccountName Mandatory true Text;
    BillingAccountType Conditional false Text;
    BillingCurrency Mandatory false NationalCurrency;
    BillingPeriodEnd Mandatory false Time;
    BillingPeriodStart Mandatory false Time;
    CapacityReservationId Conditional true Text;
    CapacityReservationStatus Conditional true USED;
    ChargeCategory Mandatory false CATEGORIES;
    ChargeClass Mandatory true OneOf(&["Correction"]);
    ChargeDescription Mandatory true Text;
    ChargeFrequency Recommended false FREQUENCIES;
    ChargePeriodEnd Mandatory false Time;
    ChargePeriodStart Mandatory false Time;
    CommitmentDiscountCategory Conditional true OneOf(&["Spend", "Usage"]);
    CommitmentDiscountId Conditional true Text;
    CommitmentDiscountName Conditional true Text;
    CommitmentDiscountQuantity Conditional true Decimal;
    CommitmentDiscountStatus Conditional true USED;
    CommitmentDiscountType Conditional true Text;
    CommitmentDiscountUnit Conditional true Unit;
    CommitmentProgramEligibilityDetails Conditional true KeyValues;
    ConsumedQuantity Conditional true Decimal;
    ConsumedUnit Conditional true Unit;
    ContractApplied Conditional true KeyValues;
    ContractedCost Mandatory false Decimal;
    ContractedUnitPrice Conditional true NotNegative;
    EffectiveCost Mandatory false Decimal;
    HostProviderName Mandatory true Text;
    InvoiceDetailId Conditional true Text;
    InvoiceId Conditional true Text;
    InvoiceIssuerName Mandatory false Text;
    ListCost Mandatory false Decimal;
    ListUnitPrice Conditional true NotNegative;
    PricingCategory Conditional true PRICINGS;
    PricingCurrency Conditional false NationalCurrency;
    PricingCurrencyContractedUnitPrice Conditional true NotNegative;
    PricingCurrencyEffectiveCost Conditional false Decimal;
    PricingCurrencyListUnitPrice Conditional true NotNegative;
    PricingQuantity Mandatory true Decimal;
    PricingUnit Mandatory true Unit;
    RegionId Conditional true Text;
    RegionName Conditional true Text;
    ResourceId Conditional true Text;
    ResourceName Conditional true Text;
    ResourceType Conditional true Text;
    ServiceCategory Mandatory false Text;
    ServiceName Mandatory false Text;
    ServiceProviderName Mandatory false Text;
    ServiceSubcategory Recommended false Text;
    SkuId Conditional true Text;
    SkuMeter Conditional true Text;
    SkuPriceDetails Conditional true KeyValues;
    SkuPriceId Conditional true Text;
    SubAccountId Conditional true Text;
    SubAccountName Conditional true Text;
    SubAccountType Conditional true Text;
    Tags Conditional true KeyValues;
}

impl FocusColumn {
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|column| column.name() == name)
    }
}

/// Columns of ours. Names that FOCUS 1.5 is about to give them (`PrincipalId`, `CredentialId`, `TokenDirection`,
/// `TokenCacheAction`) stand behind the `x_`; that draft still moves, so they are named here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnColumn {
    PrincipalId,
    CredentialId,
    Model,
    Variant,
    Run,
    Pool,
    Use,
    GpuSeconds,
    UnpricedGpuSeconds,
    Requests,
    MissedRequests,
}

impl OwnColumn {
    pub const ALL: [Self; 11] = [
        Self::PrincipalId,
        Self::CredentialId,
        Self::Model,
        Self::Variant,
        Self::Run,
        Self::Pool,
        Self::Use,
        Self::GpuSeconds,
        Self::UnpricedGpuSeconds,
        Self::Requests,
        Self::MissedRequests,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::PrincipalId => "x_PrincipalId",
            Self::CredentialId => "x_CredentialId",
            Self::Model => "x_Model",
            Self::Variant => "x_Variant",
            Self::Run => "x_Run",
            Self::Pool => "x_Pool",
            Self::Use => "x_Use",
            Self::GpuSeconds => "x_GpuSeconds",
            Self::UnpricedGpuSeconds => "x_UnpricedGpuSeconds",
            Self::Requests => "x_Requests",
            Self::MissedRequests => "x_MissedRequests",
        }
    }
}

/// Properties of `SkuPriceDetails` that the standard names; every other key there begins with `x_`.
pub(super) const SKU_PROPERTIES: &[&str] = &[
    "CoreCount",
    "DiskMaxIops",
    "DiskSpace",
    "DiskType",
    "GpuCount",
    "InstanceType",
    "InstanceSeries",
    "MemorySize",
    "NetworkMaxIops",
    "NetworkMaxThroughput",
    "OperatingSystem",
    "Redundancy",
    "StorageClass",
];

/// Service categories, each with its subcategories beside `Other (…)`.
pub(super) const SERVICES: &[(&str, &[&str])] = &[
    (
        "AI and Machine Learning",
        &[
            "AI Platforms",
            "Bots",
            "Generative AI",
            "Machine Learning",
            "Natural Language Processing",
        ],
    ),
    (
        "Analytics",
        &[
            "Analytics Platforms",
            "Business Intelligence",
            "Data Processing",
            "Search",
            "Streaming Analytics",
        ],
    ),
    ("Business Applications", &["Productivity and Collaboration"]),
    (
        "Compute",
        &[
            "Containers",
            "End User Computing",
            "Quantum Compute",
            "Serverless Compute",
            "Virtual Machines",
        ],
    ),
    (
        "Databases",
        &[
            "Caching",
            "Data Warehouses",
            "Ledger Databases",
            "NoSQL Databases",
            "Relational Databases",
            "Time Series Databases",
        ],
    ),
    (
        "Developer Tools",
        &[
            "Developer Platforms",
            "Continuous Integration and Deployment",
            "Development Environments",
            "Source Code Management",
            "Quality Assurance",
        ],
    ),
    ("Multicloud", &["Multicloud Integration"]),
    ("Identity", &["Identity and Access Management"]),
    ("Integration", &["API Management", "Messaging", "Workflow Orchestration"]),
    ("Internet of Things", &["IoT Analytics", "IoT Platforms"]),
    (
        "Management and Governance",
        &[
            "Architecture",
            "Compliance",
            "Cost Management",
            "Data Governance",
            "Disaster Recovery",
            "Endpoint Management",
            "Observability",
            "Support",
        ],
    ),
    ("Media", &["Content Creation", "Gaming", "Media Streaming", "Mixed Reality"]),
    ("Migration", &["Data Migration", "Resource Migration"]),
    ("Mobile", &[]),
    (
        "Networking",
        &[
            "Application Networking",
            "Content Delivery",
            "Network Connectivity",
            "Network Infrastructure",
            "Network Routing",
            "Network Security",
        ],
    ),
    (
        "Security",
        &["Secret Management", "Security Posture Management", "Threat Detection and Response"],
    ),
    (
        "Storage",
        &["Backup Storage", "Block Storage", "File Storage", "Object Storage", "Storage Platforms"],
    ),
    ("Web", &["Application Platforms"]),
    ("Other", &[]),
];
