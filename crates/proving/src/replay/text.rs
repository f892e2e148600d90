//! Text for the names of a trace.

use flyball_simulator::traffic::{Request, Trace};

/// Bytes that count as a token, for the gateway and for emulated engines.
const BYTES_PER_TOKEN: usize = 4;

/// Letters that need no escape in JSON, 64 of them so that six bits choose one.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// The body of a chat request: the prompt as one message, exactly as long as in the trace.
pub(super) fn body(model: &str, trace: &Trace, request: &Request) -> String {
    let mut text = String::with_capacity(request.prompt as usize * BYTES_PER_TOKEN + 256);
    text.push_str("{\"model\":\"");
    text.push_str(model);
    text.push_str("\",\"messages\":[{\"role\":\"user\",\"content\":\"");
    prompt(&mut text, trace, request);
    text.push_str("\"}],\"stream\":true,\"ignore_eos\":true,\"max_tokens\":");
    text.push_str(&request.output.max(1).to_string());
    text.push('}');
    text
}

fn prompt(text: &mut String, trace: &Trace, request: &Request) {
    let end = text.len() + request.prompt as usize * BYTES_PER_TOKEN;
    let block_bytes = trace.block_tokens as usize * BYTES_PER_TOKEN;
    for name in trace.blocks_of(request) {
        block(text, *name, block_bytes.min(end - text.len()));
    }
    // A trace whose names do not cover the prompt: the rest is this request's own.
    let own = u64::from(request.blocks.start).wrapping_add(request.at.get().to_bits());
    block(text, !own, end - text.len());
}

/// The first bytes of what stands for a name.
fn block(text: &mut String, name: u64, bytes: usize) {
    // SplitMix64 (Steele, Lea and Flood 2014), ten letters from each number.
    let mut state = name;
    let mut left = bytes;
    while left > 0 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        for _ in 0..left.min(10) {
            text.push(char::from(LETTERS[mixed as usize & 63]));
            mixed >>= 6;
            left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_simulator::seconds::Seconds;

    fn request(prompt: u32, blocks: std::ops::Range<u32>) -> Request {
        Request { at: Seconds(1.0), prompt, output: 5, blocks, patience: None }
    }

    fn content(body: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((value["max_tokens"].as_u64(), &value["stream"]), (Some(5), &true.into()));
        value["messages"][0]["content"].as_str().unwrap().to_owned()
    }

    #[test]
    fn prompts_are_alike_exactly_as_far_as_their_names() {
        let blocks = vec![7, 8, 9, 7, 8, 10];
        let trace = Trace { blocks, block_tokens: 512, ..Trace::default() };
        let one = content(&body("m", &trace, &request(1_400, 0..3)));
        let other = content(&body("m", &trace, &request(1_536, 3..6)));
        assert_eq!((one.len(), other.len()), (1_400 * 4, 1_536 * 4));
        let alike = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        // Two blocks of 512 tokens, and perhaps a letter or two by chance.
        assert!((4_096..4_100).contains(&alike), "{alike}");
    }

    #[test]
    fn a_prompt_longer_than_its_names_ends_in_something_of_its_own() {
        let trace = Trace { blocks: vec![1, 1], block_tokens: 16, ..Trace::default() };
        let one = content(&body("m", &trace, &request(40, 0..1)));
        let other = content(&body("m", &trace, &request(40, 1..2)));
        assert_eq!((one.len(), &one[..64]), (160, &other[..64]));
        assert_ne!(one, other);
    }
}
