//! How numbers are stored, and in which format the tensor cores multiply them.

use std::fmt;

/// A format in which weights, caches or activations are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dtype {
    Fp32,
    Bf16,
    Fp16,
    Fp8,
    Int8,
    /// Four bits with an 8-bit scale for every 32 values (OCP microscaling).
    Mxfp4,
    /// Four bits with an 8-bit scale for every 16 values.
    Nvfp4,
    /// Four bits with a 16-bit scale for every 32 values, the usual weight-only form.
    Int4,
}

impl Dtype {
    /// Every format, in order of its name.
    pub const ALL: [Self; 8] = [
        Self::Fp32,
        Self::Bf16,
        Self::Fp16,
        Self::Fp8,
        Self::Int8,
        Self::Mxfp4,
        Self::Nvfp4,
        Self::Int4,
    ];

    /// Bytes for one value, its share of the scales included.
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 | Self::Fp16 => 2.0,
            Self::Fp8 | Self::Int8 => 1.0,
            Self::Mxfp4 => 0.5 + 1.0 / 32.0,
            Self::Nvfp4 => 0.5 + 1.0 / 16.0,
            Self::Int4 => 0.5 + 2.0 / 32.0,
        }
    }

    /// The word used on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
            Self::Int4 => "int4",
        }
    }

    /// The format of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format in which tensor cores multiply, which decides the peak that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Math {
    /// BF16 or FP16; the two have the same peak on every accelerator in the catalogue.
    Half,
    Fp8,
    Fp4,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for dtype in Dtype::ALL {
            assert_eq!(Dtype::named(dtype.name()), Some(dtype));
        }
        assert_eq!(Dtype::named("fp6"), None);
    }
}
