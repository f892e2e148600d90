//! The built-in files hold what they promise, and broken files say all that is wrong with them.

use super::*;
use crate::hardware::MeasuredSpeed;
use crate::precision::Math;
use flyball_core::units::{Bytes, Currency, Gpus, Money};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const README: &str = include_str!("../../../../catalog/README.md");

/// Read once: the property tests need it a few hundred times.
static BUILTIN: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

fn with(text: &str) -> Result<Catalog, String> {
    BUILTIN.clone().with_file(text, "mine.toml").map_err(|error| error.to_string())
}

fn id(name: &str) -> AcceleratorId {
    BUILTIN.accelerator(name).unwrap().id.clone()
}

#[test]
fn the_built_in_files_have_no_problem() {
    if let Err(error) = Catalog::parse(ACCELERATORS, MEASURED, PRICES) {
        panic!("{error}");
    }
}

#[test]
fn every_row_has_a_source_and_names_lead_to_one_part() {
    let catalog = &*BUILTIN;
    let mut seen = BTreeSet::new();
    for part in &catalog.accelerators {
        assert!(!part.source.is_empty(), "{}", part.id);
        for name in names(part) {
            assert!(seen.insert(folded(name)), "{name}");
            assert_eq!(catalog.accelerator(name).unwrap().id, part.id);
            assert_eq!(catalog.accelerator(&name.to_uppercase()).unwrap().id, part.id);
        }
    }
    assert!(catalog.prices.iter().all(|offer| !offer.source.is_empty()));
}

#[test]
fn parts_obey_physics() {
    for part in &BUILTIN.accelerators {
        let name = part.id.as_str();
        assert!((0.1e12..=20e12).contains(&part.bandwidth), "{name}");
        let peaks = [Math::Half, Math::Fp8, Math::Fp4].map(|math| part.peak.at(math));
        assert!(peaks.is_sorted(), "{name}");
        // A part computes between 30 and 1,000 operations per byte that it can read.
        assert!((30.0..1_000.0).contains(&(part.peak.half / part.bandwidth)), "{name}");
        // What a device shows is what is sold, by one count of a gigabyte or the other.
        let shown = part.usable_memory.get() as f64 / part.memory.get() as f64;
        assert!((0.9..1.08).contains(&shown), "{name}: {shown}");
        // No link is faster than the memory behind it.
        assert!(part.scale_up.bandwidth < part.bandwidth, "{name}");
        assert!(part.scale_out.bandwidth <= part.scale_up.bandwidth, "{name}");
        assert!(part.tdp_watts.is_none_or(|watts| (50..2_000).contains(&watts)), "{name}");
        assert!((2015..2030).contains(&part.year), "{name}");
    }
}

#[test]
fn the_names_of_published_measurements_and_node_labels_resolve() {
    for (name, expected) in [
        ("h100", "h100-sxm-80gb"),
        ("H100-SXM-80GB", "h100-sxm-80gb"),
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("H200-SXM-141GB", "h200-sxm-141gb"),
        ("B200-180GB", "b200-sxm-180gb"),
        ("B200-SXM", "b200-sxm-180gb"),
        ("GB200 (per GPU)", "gb200"),
        ("RTX-PRO-6000-BSE", "rtx-pro-6000"),
        ("RTX-PRO-6000", "rtx-pro-6000"),
        ("RTX-4090-24GB", "rtx-4090-24gb"),
        ("MI300X-192GB", "mi300x"),
        ("H100-96GB-HBM2e-2.4TBps-500W", "h100-96gb-hbm2e"),
        ("V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("A100-SXM-40GB", "a100-sxm-40gb"),
        ("B300-SXM", "b300-sxm"),
        ("TPU-v4", "tpu-v4"),
        ("NVIDIA-A100-SXM4-80GB", "a100-sxm-80gb"),
        ("l40s", "l40s"),
    ] {
        assert_eq!(id(name).as_str(), expected, "{name}");
    }
}

#[test]
fn an_unknown_name_comes_with_near_misses() {
    let catalog = &*BUILTIN;
    let near = |name: &str| {
        let unknown = catalog.accelerator(name).unwrap_err();
        unknown.near.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    // There are four, with 40 and 80 GB: guessing one could say that a model fits when it does not.
    assert_eq!(near("a100"), "a100-sxm-40gb a100-sxm-80gb a100-pcie-80gb a100-pcie-40gb");
    assert_eq!(near("h1000").split(' ').next(), Some("h100-sxm-80gb"));
    assert_eq!(near("zzz"), "");
    assert_eq!(near(""), "");
    let unknown = catalog.accelerator("zzz").unwrap_err();
    assert_eq!(unknown.to_string(), "unknown accelerator `zzz`");
}

#[test]
fn what_was_measured_is_attached() {
    let catalog = &*BUILTIN;
    let Some(MeasuredSpeed { half_gemm, small_gemm_seconds, all_reduce, .. }) =
        &catalog.accelerator("h100").unwrap().measured
    else {
        panic!("h100 was measured");
    };
    assert_eq!((*half_gemm, *small_gemm_seconds), (0.89, 2.64e-6));
    let eight = all_reduce.iter().find(|group| group.gpus == 8).unwrap();
    assert_eq!((eight.nccl_alpha, eight.nccl_bus_bandwidth), (15.6e-6, 445e9));
    assert_eq!(catalog.accelerators.iter().filter(|part| part.measured.is_some()).count(), 10);
    // GB300 has eight-way numbers of one kernel only.
    let gb300 = catalog.accelerator("gb300").unwrap().measured.as_ref().unwrap();
    assert_eq!(gb300.all_reduce.iter().map(|group| group.gpus).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(catalog.accelerator("h100-nvl").unwrap().measured, None);
}

#[test]
fn the_cheapest_price_is_one_to_trust() {
    let catalog = &*BUILTIN;
    let cheapest = |name: &str, provider, purchase| {
        let offer = catalog.cheapest(&id(name), provider, purchase)?;
        Some((offer.provider.as_str(), offer.price.amount().micros()))
    };
    assert_eq!(cheapest("h100", Some("AWS"), PriceKind::OnDemand), Some(("aws", 6_880_000)));
    assert_eq!(cheapest("h100", Some("vast"), PriceKind::OnDemand), Some(("vast", 1_867_500)));
    // A marketplace counts only if it is named.
    assert_eq!(cheapest("h100", None, PriceKind::OnDemand), Some(("verda", 3_250_000)));
    // 0.4514 at Azure is marked as suspect and is not taken.
    assert_eq!(cheapest("a100-80gb", None, PriceKind::Spot), Some(("verda", 895_000)));
    // Where there is nothing better, it is.
    assert_eq!(cheapest("h100-nvl", None, PriceKind::OnDemand), Some(("azure", 6_980_000)));
    assert_eq!(cheapest("gaudi-3", None, PriceKind::OnDemand), None);
    assert_eq!(catalog.prices_of(&id("gh200")).count(), 1);
}

#[test]
fn a_part_may_be_like_another_or_stand_alone() {
    let catalog = with(
        "[[accelerator]]\nid = 'ours'\nlike = 'h100'\nbandwidth_tb_s = 2.4\naliases = ['our h100']\n\
         [[accelerator]]\nid = 'odd'\nmemory_gib = 64\nbandwidth_tb_s = 1\nhalf_tflops = 100\n\
         [[accelerator]]\nid = 'odd-2'\nlike = 'odd'\nnode_gpus = 4\nhalf_tflops = 5_0\r\nfp8_tflops = 99.5\n",
    )
    .unwrap();
    let h100 = catalog.accelerator("h100").unwrap();
    let ours = catalog.accelerator("OUR-H100").unwrap();
    assert_eq!((ours.bandwidth, ours.peak, &ours.measured), (2.4e12, h100.peak, &h100.measured));
    assert_eq!(ours.usable_memory, h100.usable_memory);
    assert_eq!(ours.source, format!("mine.toml; the rest: {}", h100.source));
    let odd = catalog.accelerator("odd").unwrap();
    assert_eq!((odd.usable_memory, odd.node_gpus), (Bytes::new(64 << 30), Gpus::new(1)));
    let second = catalog.accelerator("odd-2").unwrap();
    assert_eq!((second.node_gpus, second.scale_up_domain), (Gpus::new(4), Gpus::new(4)));
    assert_eq!((second.peak.half, second.peak.fp8), (50e12, Some(99.5e12)));
}

#[test]
fn a_part_is_replaced_only_when_the_file_says_so() {
    let file = "[[accelerator]]\nid = 'h100-sxm-80gb'\nlike = 'h100'\ntdp_w = 500\n";
    assert_eq!(
        with(file).unwrap_err(),
        "mine.toml:1: there is already an accelerator h100-sxm-80gb: choose another id, or write \
         replace = true"
    );
    let catalog = with(&format!("{file}replace = true\n")).unwrap();
    assert_eq!(catalog.accelerator("h100").unwrap().tdp_watts, Some(500));
    assert_eq!(catalog.accelerators.len(), BUILTIN.accelerators.len());
    let taken = with("[[accelerator]]\nid = 'mine'\nlike = 'h100'\naliases = ['L40s']\n");
    assert!(taken.unwrap_err().contains("the name `L40s` already stands for l40s"));
}

#[test]
fn a_price_replaces_the_one_of_its_sku_or_all() {
    let file = "[[price]]\naccelerator = 'h100'\nprovider = 'AWS'\npurchase = 'on-demand'\n\
                usd_per_gpu_hour = 2.1\nas_of = 2026-11-01\n";
    let prices = |catalog: &Catalog| -> Vec<(String, i64)> {
        let ours = |offer: &&Offer| {
            offer.provider.eq_ignore_ascii_case("aws") && offer.purchase == PriceKind::OnDemand
        };
        let h100 = id("h100");
        let found = catalog.prices_of(&h100).filter(ours);
        found.map(|offer| (offer.sku.clone(), offer.price.amount().micros())).collect()
    };
    assert_eq!(prices(&with(file).unwrap()), [("any".to_owned(), 2_100_000)]);
    let one = with(&format!("{file}sku = 'p5.48xlarge'\n")).unwrap();
    let expected = [("p5.4xlarge".to_owned(), 6_880_000), ("p5.48xlarge".to_owned(), 2_100_000)];
    assert_eq!(prices(&one), expected);
}

#[test]
fn everything_wrong_with_a_users_file_is_told_at_once() {
    let file = "colour = 'red'
[[accelerator]]
id = 'My GPU'
memory_gib = '80 GB'
bandwith_tb_s = \
                3.35
half_tflops = true
[[accelerator]]
id = 'fast'
memory_gib = 80
bandwidth_tb_s \
                = 3350
half_tflops = 989
fp8_tflops = 500
aliases = 'x'
[[accelerator]]
id = \
                'fine'
like = 'h10'
[[price]]
accelerator = 'h100x'
provider = 'us'
purchase = \
                'ondemand'
usd_per_gpu_hour = -2
as_of = '2026-02-30'
[[price]]
";
    let expected = [
        "1: nothing reads the key colour: use one of accelerator, price",
        "2: bandwidth_tb_s is missing: write bandwidth_tb_s = 3.35",
        "3: id is `My GPU`: write lower-case letters, digits and `-`, as in h100-sxm-80gb",
        "4: memory_gib is `80 GB`: write a number above zero, without a unit",
        "5: nothing reads the key bandwith_tb_s: write bandwidth_tb_s",
        "6: half_tflops is of type boolean: write a text in quotes, or a number",
        "7: memory bandwidth of 3350 TB/s: write TB/s, between 0.05 and 50",
        "7: a narrower format has a lower peak: write dense peaks, so that half <= fp8 <= fp4",
        "13: aliases is not a list: write aliases = [\"one\", \"two\"]",
        "16: like is `h10`, which no part is called: write one of h100-sxm-80gb, h100-nvl-94gb, \
         h100-pcie-80gb, h100-96gb-hbm2e",
        "18: unknown accelerator `h100x`: write h100-sxm-80gb, or add it as [[accelerator]]",
        "20: purchase is `ondemand`: write one of on-demand, spot, reserved-1y, reserved-3y, \
         short-reservation",
        "21: usd_per_gpu_hour is `-2`: write US dollars for one GPU and hour, as in 2.10, above \
         zero",
        "22: as_of is `2026-02-30`: write the day as in 2026-08-22",
        "23: accelerator is missing: write accelerator = \"h100\"",
        "23: provider is missing: write provider = \"our-cloud\"",
        "23: purchase is missing: write purchase = \"on-demand\"",
        "23: usd_per_gpu_hour is missing: write usd_per_gpu_hour = 2.10",
        "23: as_of is missing: write as_of = \"2026-08-22\"",
    ];
    let expected: Vec<String> = expected.iter().map(|line| format!("mine.toml:{line}")).collect();
    let found = with(file).unwrap_err();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_file_that_is_not_toml_says_where() {
    let error = with("[[price]]\nprovider = us\npurchase = \n").unwrap_err();
    assert!(error.starts_with("mine.toml:2: not TOML: "), "{error}");
    assert!(error.contains("\nmine.toml:3: not TOML: "), "{error}");
    assert_eq!(with("[accelerator]\nid = 'x'\n").unwrap_err().lines().count(), 1);
    assert_eq!(with("").unwrap(), *BUILTIN);
}

#[test]
fn everything_wrong_with_a_table_is_told_at_once() {
    let cells = |row: &str| format!("{}\n{row}\n", prices::COLUMNS.join(","));
    let errors = |prices: &str| {
        let error = Catalog::parse(ACCELERATORS, MEASURED, prices).unwrap_err();
        error.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        errors(&cells(
            "h200,aws,,0,us,hourly,1.x,,,2026-8-1,s,sure,\n\
             h100-sxm-80gb,aws,any,8,us,spot,2.5,3,4,2026-08-01,s,high,\n\
             h100-sxm-80gb,aws,any,8,us,spot,2.5,,,2026-08-01,s,high,\n\
             nothing,aws,any,8,us,spot,2.5,,,2026-08-01,s,high,\n\
             short,row"
        )),
        [
            "prices.csv:2: sku is empty: write it: a price without it cannot be checked",
            "prices.csv:2: gpus_per_sku is `0`: write a whole number above zero",
            "prices.csv:2: purchase is `hourly`: write one of on-demand, spot, reserved-1y, \
             reserved-3y, short-reservation",
            "prices.csv:2: usd_per_gpu_hour is `1.x`: write US dollars for one GPU and hour, as in \
             2.10, above zero",
            "prices.csv:2: as_of is `2026-8-1`: write the day as in 2026-08-22",
            "prices.csv:2: confidence is `sure`: write low, medium or high",
            "prices.csv:3: the price lies outside usd_min and usd_max: correct one of the three",
            "prices.csv:4: a second price of h100-sxm-80gb at aws, spot, any: keep one, or \
             distinguish them by sku",
            "prices.csv:5: accelerator `nothing` is not in accelerators.csv: add its row there, or \
             correct the id",
            "prices.csv:6: the row has 2 cells: write 13 cells, with quotes around commas",
        ]
    );
    let wrong = errors("accelerator,price\nx,1\n");
    assert!(wrong[0].starts_with("prices.csv:1: the columns are `accelerator,price`: write `acc"));
    assert_eq!(wrong.len(), 1);
    let measured = MEASURED.replace("h100-sxm-80gb,", "h99,").replace("0.911", "91");
    let error = Catalog::parse(ACCELERATORS, &measured, "x\n").unwrap_err().to_string();
    assert!(error.contains("measured.csv:2: bf16_gemm_median_frac is `91`"), "{error}");
    assert!(error.contains("measured.csv:3: id `h99` is not in accelerators.csv"), "{error}");
    assert!(error.contains("prices.csv:1: the columns are `x`"), "{error}");
}

/// The names in backticks that open the rows of the table under a heading of the readme.
fn listed(heading: &str) -> Vec<&'static str> {
    let start = README.find(&format!("## {heading}\n")).expect("the heading is there") + 3;
    let section = README[start..].split("\n## ").next().unwrap_or_default();
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_readme_lists_every_column_and_key() {
    assert_eq!(listed("accelerators.csv"), accelerators::COLUMNS);
    assert_eq!(listed("measured.csv"), measured::COLUMNS);
    assert_eq!(listed("prices.csv"), prices::COLUMNS);
    assert_eq!(listed("`[[accelerator]]` of your file"), user::ACCELERATOR_KEYS);
    assert_eq!(listed("`[[price]]` of your file"), user_price::PRICE_KEYS);
}

proptest! {
    #[test]
    fn a_users_file_says_what_was_written(
        gib in 1u32..4096,
        rate in 1u32..500,
        half in 1u32..10_000,
        node in 1u32..64,
        micros in 1i64..1_000_000_000,
        day in 1u32..29,
        name in "[a-z]{3}[a-z0-9]{0,5}-mine",
    ) {
        let (dollars, rest) = (micros / 1_000_000, micros % 1_000_000);
        let file = format!(
            "[[accelerator]]\nid = \"{name}\"\nmemory_gib = {gib}\nbandwidth_tb_s = {}\n\
             half_tflops = {half}\nnode_gpus = {node}\nvendor = \"us\"\n\
             [[price]]\naccelerator = \"{name}\"\nprovider = \"us\"\npurchase = \"reserved-3y\"\n\
             usd_per_gpu_hour = {dollars}.{rest:06}\nas_of = \"2026-11-{day:02}\"\n",
            f64::from(rate) / 10.0,
        );
        let catalog = with(&file).unwrap();
        let part = catalog.accelerator(&name).unwrap();
        prop_assert_eq!(part.usable_memory, Bytes::new(u64::from(gib) << 30));
        prop_assert!((part.bandwidth - f64::from(rate) * 1e11).abs() < 1.0);
        prop_assert_eq!(part.peak.half, f64::from(half) * 1e12);
        prop_assert_eq!((part.node_gpus, part.vendor.as_str()), (Gpus::new(node), "us"));
        let offer = catalog.cheapest(&part.id, Some("us"), PriceKind::Reserved3y).unwrap();
        prop_assert_eq!(offer.price.amount(), Money::from_micros(micros, Currency::USD));
        prop_assert_eq!(offer.as_of.to_string(), format!("2026-11-{day:02}"));
        // Adding it again changes nothing: the price replaces itself.
        let prices = file.split_once("[[price]]").unwrap().1;
        let again = catalog.clone().with_file(&format!("[[price]]{prices}"), "mine.toml").unwrap();
        prop_assert_eq!(again, catalog);
    }

    #[test]
    fn no_text_makes_a_file_panic(text in "\\PC*|(\\[\\[(price|accelerator)\\]\\]\n|id = 1\n|[a-z]{1,8} = \\PC{1,5}\n){0,6}") {
        let _ = with(&text);
    }
}

#[test]
fn many_that_are_connected_are_sold_only_by_who_connects_them() {
    let catalog = Catalog::builtin();
    let offers = catalog.offers(&id("h100-sxm-80gb"), None, PriceKind::OnDemand);
    let most: Vec<u32> = offers.iter().map(|(most, _)| *most).collect();
    let price: Vec<i64> = offers.iter().map(|(_, one)| one.price.amount().micros()).collect();
    assert!(most.is_sorted() && price.is_sorted(), "{most:?} {price:?}");
    assert!(most[0] < 512 && *most.last().unwrap() >= 16_384, "{most:?}");
    let named = catalog.offers(&id("h100-sxm-80gb"), Some("vast"), PriceKind::OnDemand);
    assert_eq!(named.len(), 1, "who names a seller knows how many it connects");
}

#[test]
fn every_seller_has_a_kind() {
    let catalog = Catalog::builtin();
    for offer in &catalog.prices {
        let known = catalog.providers.iter().any(|one| one.name == offer.provider);
        assert!(known, "{} is not in providers.csv", offer.provider);
    }
}
