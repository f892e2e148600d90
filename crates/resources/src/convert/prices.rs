//! What tokens cost, as budgets count it.

use super::ConversionProblem;
use crate::decimal;
use crate::model_service::{ModelServiceSpec, TokenPricesSpec};
use flyball_quota::TokenPrices;

impl ModelServiceSpec {
    /// What its tokens cost, if its owner says.
    pub fn token_prices(&self) -> Result<Option<TokenPrices>, ConversionProblem> {
        self.prices.as_ref().map(TokenPricesSpec::of_quota).transpose()
    }
}

impl TokenPricesSpec {
    /// In pico-dollars for one token, exactly: those are millionths of a dollar for a million.
    pub fn of_quota(&self) -> Result<TokenPrices, ConversionProblem> {
        let price = |text: &str, field: &str| {
            let micros = decimal::micros(text).and_then(|micros| u64::try_from(micros).ok());
            micros.ok_or_else(|| {
                let what = "must be a decimal such as \"0.05\"";
                ConversionProblem::of(format!("spec.prices.{field}"), what)
            })
        };
        let cached = self.cached_input_per_million_tokens.as_ref();
        Ok(TokenPrices {
            input: price(&self.input_per_million_tokens, "inputPerMillionTokens")?,
            cached_input: price(
                cached.unwrap_or(&self.input_per_million_tokens),
                "cachedInputPerMillionTokens",
            )?,
            output: price(&self.output_per_million_tokens, "outputPerMillionTokens")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(input: &str, cached: Option<&str>, output: &str) -> TokenPricesSpec {
        TokenPricesSpec {
            input_per_million_tokens: input.to_owned(),
            cached_input_per_million_tokens: cached.map(str::to_owned),
            output_per_million_tokens: output.to_owned(),
        }
    }

    #[test]
    fn a_price_of_a_million_tokens_is_exact_for_one() {
        let prices = spec("0.05", Some("0.005"), "1.25").of_quota().unwrap();
        let expected = TokenPrices { input: 50_000, cached_input: 5_000, output: 1_250_000 };
        assert_eq!(prices, expected);
        // The smallest that can be written is not nothing, and the largest fits.
        let ends = spec("0.000001", None, "999999999.999999").of_quota().unwrap();
        assert_eq!((ends.input, ends.output), (1, 999_999_999_999_999));
    }

    #[test]
    fn what_is_cached_costs_what_the_rest_costs_unless_said() {
        let prices = spec("3", None, "15").of_quota().unwrap();
        assert_eq!(prices.cached_input, prices.input);
        assert_eq!(spec("3", Some("0"), "15").of_quota().unwrap().cached_input, 0);
    }

    #[test]
    fn a_price_that_is_none_names_its_field() {
        let wrong = spec("3", Some("-1"), "15").of_quota().unwrap_err();
        assert_eq!(wrong.field, "spec.prices.cachedInputPerMillionTokens");
    }
}
