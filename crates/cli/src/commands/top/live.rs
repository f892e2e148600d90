//! The live screen: asks again and again, and listens to keys.

use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyEventKind};

use super::answer::Top;
use super::fetch::Gateways;
use super::screen::{Screen, Then};
use crate::output::{Exit, Failure};

/// Between two looks at the keys: a person does not notice it, and a core does not either.
const KEYS: Duration = Duration::from_millis(40);

/// Runs until a key ends it. Gateways that stop answering are said to, and asked again.
pub(super) async fn run(gateways: &Gateways, every: Duration) -> Result<Exit, Failure> {
    // What was wrong from the beginning is said as always, and not on a screen that vanishes.
    let mut top = gateways.fetch().await?;
    let mut failure = None;
    // Gives the terminal back however this ends.
    let _back = Back;
    let mut terminal = ratatui::try_init().map_err(|error| no_screen(&error))?;
    let mut screen = Screen::default();
    let mut next = Instant::now() + every;
    let mut asking: Option<PendingFetch<'_>> = None;
    let mut draw = true;
    loop {
        if draw {
            terminal
                .draw(|frame| screen.draw(frame, &top, failure.as_ref()))
                .map_err(|error| no_screen(&error))?;
        }
        draw = false;
        if asking.is_none() && Instant::now() >= next {
            asking = Some(Box::pin(gateways.fetch()));
            next = Instant::now() + every;
        }
        tokio::select! {
            fetched = pending(asking.as_mut()) => {
                asking = None;
                match fetched {
                    Ok(fetched) => (top, failure) = (fetched, None),
                    // The last numbers stay on the screen under a word of warning.
                    Err(problem) => failure = Some(problem),
                }
                draw = true;
            }
            () = tokio::time::sleep(KEYS) => {}
        }
        while event::poll(Duration::ZERO).map_err(|error| no_screen(&error))? {
            match event::read().map_err(|error| no_screen(&error))? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if screen.key(key) == Then::End {
                        return Ok(Exit::Yes);
                    }
                    draw = true;
                }
                Event::Resize(..) => draw = true,
                _ => {}
            }
        }
    }
}

/// A look that is under way.
type PendingFetch<'a> = Pin<Box<dyn Future<Output = Result<Top, Failure>> + 'a>>;

struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn pending(asking: Option<&mut PendingFetch<'_>>) -> Result<Top, Failure> {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

fn no_screen(error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, "cannot draw on this terminal")
        .because(error.to_string())
        .hint("flyball top without --watch prints once")
}
