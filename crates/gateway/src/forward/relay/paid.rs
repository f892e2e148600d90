//! A stream that is paid for as it goes: no token is passed on before it is.
//!
//! While it waits for the operator nothing is read from its engine. If there is no money, the engine is told to stop, and
//! the client reads an event that says why behind the last token that was paid.

use super::{Relay, first_boundary, last_boundary};
use crate::answer::Problem;
use crate::quota::{QuotaEstimate, QuotaRefusal, QuotaTicket};
use crate::sse::{Usage, data_of};
use crate::surface::Surface;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What is kept of a stream that is paid for as it goes.
#[derive(Default)]
pub(super) struct Meter {
    /// Tokens that were passed on.
    passed: u64,
    /// Whole events that are not paid.
    pub(super) unpaid: Vec<Bytes>,
    /// The wait for money. It holds what the request pays with: hung up, it is settled all the same.
    paying: Option<Paying>,
    /// Whether the engine has ended while the last events wait.
    pub(super) has_ended: bool,
    /// The tokens that were paid when it was stopped because there was no money for more.
    pub(super) stopped_at: Option<u64>,
}

type Paying = Pin<Box<dyn Future<Output = (QuotaTicket, Result<(), QuotaRefusal>)> + Send>>;

impl Meter {
    /// Whether something waits for money.
    pub(super) const fn is_paying(&self) -> bool {
        self.paying.is_some()
    }
}

impl Relay {
    /// What of these whole events is paid. The rest waits.
    pub(super) fn paid_part(&mut self, mut piece: Bytes) -> Bytes {
        if self.meter.is_paying() {
            self.meter.unpaid.push(piece);
            return Bytes::new();
        }
        let surface = self.answering.head().surface;
        let reported = self.reported_output();
        let ticket = self.answering.sending.admitted.granted().ticket();
        let Some(ticket) = ticket.as_mut().filter(|ticket| ticket.is_metered()) else {
            return piece;
        };
        let tokens = tokens_in(surface, &piece);
        let after = (self.meter.passed + tokens).max(reported);
        if ticket.has_written(after) {
            self.meter.passed = after;
            return piece;
        }
        let left = ticket.paid().saturating_sub(self.meter.passed);
        let (end, passed) = first(surface, &piece, left);
        self.meter.passed += passed;
        self.meter.unpaid.push(piece.split_off(end));
        self.ask_for_money();
        piece
    }

    /// Waits for money; `None` if none is needed.
    pub(super) fn poll_paying(&mut self, cx: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        let paying = self.meter.paying.as_mut()?;
        let Poll::Ready((ticket, paid)) = paying.as_mut().poll(cx) else {
            return Some(Poll::Pending);
        };
        self.meter.paying = None;
        let most = ticket.paid();
        *self.answering.sending.admitted.granted().ticket() = Some(ticket);
        Some(Poll::Ready(match paid {
            Ok(()) => {
                let unpaid = std::mem::take(&mut self.meter.unpaid);
                unpaid.into_iter().for_each(|piece| self.pass_joined(piece));
                // It may have come while nobody looked.
                if self.failure.is_some() {
                    return Some(Poll::Ready(self.give_up(&Problem::BrokenStream)));
                }
                if self.meter.has_ended && !self.meter.is_paying() {
                    self.end_whole();
                }
                Ok(())
            }
            Err(refusal) => {
                self.meter.unpaid.clear();
                self.meter.stopped_at = Some(most);
                self.cut();
                self.fail(&refusal.problem(&QuotaEstimate::default(), None))
            }
        }))
    }

    fn ask_for_money(&mut self) {
        let Some(mut ticket) = self.answering.sending.admitted.granted().ticket().take() else {
            return;
        };
        let needed = ticket.paid().saturating_add(1);
        self.meter.paying = Some(Box::pin(async move {
            let paid = ticket.pay(needed).await;
            (ticket, paid)
        }));
    }

    /// Tokens of the answer so far, where the engine says so with each event: of several that come in one event nobody
    /// else knows.
    fn reported_output(&self) -> u64 {
        let seen = self.watcher.as_ref().map(|watcher| watcher.seen());
        let going = seen.filter(|seen| seen.finish.is_none());
        // A second engine counts only what it wrote itself.
        let all = |reported: Usage| {
            self.joined.as_ref().map_or(reported, |joined| joined.usage(reported))
        };
        going.and_then(|seen| seen.usage).map_or(0, |reported| all(reported).output)
    }
}

/// These whole events without the one that only says what the answer came to.
pub(super) fn without_usage(events: Bytes) -> Bytes {
    let is_usage = |data: &[u8]| is_without_choices(data) && has(data, br#""usage""#);
    let found = data_of(&events).find(|(_, data)| is_usage(data));
    let Some((at, _)) = found else { return events };
    let begins = last_boundary(&events[..at]);
    let ends = first_boundary(&events[at..]).map_or(events.len(), |ends| at + ends);
    [&events[..begins], &events[ends..]].concat().into()
}

/// Tokens in these whole events, as far as events tell: each is one, unless it only opens or closes the answer.
fn tokens_in(surface: Surface, piece: &[u8]) -> u64 {
    data_of(piece).map(|(_, data)| u64::from(is_token(surface, data))).sum()
}

/// The end of the events that have so many tokens, and how many that are.
fn first(surface: Surface, piece: &[u8], tokens: u64) -> (usize, u64) {
    let mut passed = 0;
    for (at, data) in data_of(piece) {
        let token = u64::from(is_token(surface, data));
        if passed + token > tokens {
            // The event may have begun with its name.
            return (last_boundary(&piece[..at]), passed);
        }
        passed += token;
    }
    (piece.len(), passed)
}

fn is_token(surface: Surface, data: &[u8]) -> bool {
    match surface {
        Surface::Chat | Surface::Completions => {
            data != b"[DONE]" && !is_without_choices(data) && !closes(data)
        }
        Surface::Messages => has(data, b"content_block_delta"),
        Surface::Responses => has(data, br#".delta""#),
        Surface::Embeddings => false,
    }
}

fn is_without_choices(data: &[u8]) -> bool {
    has(data, br#""choices":[]"#) || has(data, br#""choices": []"#)
}

/// In a text the quotes of a mark would be escaped.
fn has(data: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(data, mark).is_some()
}

/// Whether it says why the answer ended. In a text its quotes would be escaped.
fn closes(data: &[u8]) -> bool {
    const KEY: &[u8] = br#""finish_reason":"#;
    memchr::memmem::find_iter(data, KEY).any(|at| {
        let rest = data[at + KEY.len()..].iter();
        rest.copied().find(|byte| *byte != b' ') == Some(b'"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n",
        ": a comment\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"finish_reason\\\":\\\"\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\": \"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn usage_that_nobody_asked_for_is_not_passed_on() {
        let without = without_usage(Bytes::from_static(CHAT.as_bytes()));
        let text = String::from_utf8(without.to_vec()).unwrap();
        assert!(!text.contains("usage") && text.ends_with("data: [DONE]\n\n"), "{text}");
        assert_eq!(tokens_in(Surface::Chat, text.as_bytes()), 2);
        // Azure opens a stream without choices, and with something else to say.
        let other = Bytes::from_static(b"data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n");
        assert_eq!(without_usage(other.clone()), other);
        let last = Bytes::from_static(b"data: {\"choices\": [], \"usage\": {}}\r\n\r\n");
        assert!(without_usage(last).is_empty());
    }

    #[test]
    fn an_event_is_a_token_unless_it_closes_the_answer() {
        assert_eq!(tokens_in(Surface::Chat, CHAT.as_bytes()), 2);
        let messages = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n\
                        event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n";
        assert_eq!(tokens_in(Surface::Messages, messages.as_bytes()), 1);
    }

    #[test]
    fn events_are_cut_behind_the_last_that_is_paid() {
        let cut = |tokens| first(Surface::Chat, CHAT.as_bytes(), tokens);
        assert_eq!(cut(0), (0, 0));
        let (end, passed) = cut(1);
        assert!(CHAT[end..].starts_with("data: "), "{}", &CHAT[end..]);
        assert_eq!(passed, 1);
        // What only closes an answer costs nothing.
        assert_eq!(cut(2), (CHAT.len(), 2));
    }
}
