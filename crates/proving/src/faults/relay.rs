//! One connection: two lines, each of which may end both.

use super::{FaultCounts, MOST_HELD, reset};
use crate::sockets;
use flyball_simulator::network::{Direction, Fate, Line, NetworkStep};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// How a direction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its source closed in order, or it was half closed by the script.
    Closed,
    /// Both directions are to be reset.
    Reset,
    /// Both directions are to be closed in order.
    Close,
}

const READ_BYTES: usize = 16 << 10;

pub(super) async fn run(
    mut client: TcpStream,
    upstream: SocketAddr,
    fate: &Fate,
    counts: &FaultCounts,
) -> io::Result<()> {
    let mut server = match sockets::connect(upstream, 0).await {
        Ok(server) => server,
        Err(error) => {
            // As if there were no proxy: whoever asks for what is not there is refused.
            reset(&client)?;
            return Err(error);
        }
    };
    let end = {
        let (mut client_reads, mut client_writes) = client.split();
        let (mut server_reads, mut server_writes) = server.split();
        let asks = direction(
            &mut client_reads,
            &mut server_writes,
            fate.line(Direction::ToServer),
            counts,
        );
        let answers = direction(
            &mut server_reads,
            &mut client_writes,
            fate.line(Direction::ToClient),
            counts,
        );
        tokio::pin!(asks, answers);
        // The first that ends in order leaves the other alone; a reset ends both.
        let first = tokio::select! {
            end = &mut asks => end.map(|end| (end, true)),
            end = &mut answers => end.map(|end| (end, false)),
        };
        match first {
            Ok((End::Closed, true)) => answers.await,
            Ok((End::Closed, false)) => asks.await,
            Ok((end, _)) => Ok(end),
            Err(error) => Err(error),
        }
    };
    match end {
        // A side that broke off breaks the other off.
        Ok(End::Reset) | Err(_) => {
            reset(&client)?;
            reset(&server)
        }
        Ok(End::Closed | End::Close) => Ok(()),
    }
}

async fn direction(
    from: &mut ReadHalf<'_>,
    to: &mut WriteHalf<'_>,
    mut line: Line,
    counts: &FaultCounts,
) -> io::Result<End> {
    let mut buffer = vec![0; READ_BYTES];
    // A rule at byte 0 happens before any byte.
    let mut count = 0;
    loop {
        for step in line.feed(&buffer[..count]) {
            if !matches!(step, NetworkStep::Write(_)) {
                counts.steps.fetch_add(1, Ordering::Relaxed);
            }
            match step {
                NetworkStep::Write(bytes) => to.write_all(&bytes).await?,
                NetworkStep::Wait(time) => {
                    tokio::time::sleep(Duration::from_secs_f64(time.get())).await;
                }
                NetworkStep::Stall => return stalled(from).await,
                NetworkStep::HalfClose => {
                    to.shutdown().await?;
                    return Ok(End::Closed);
                }
                NetworkStep::Reset => return Ok(End::Reset),
                NetworkStep::Close => return Ok(End::Close),
            }
        }
        count = from.read(&mut buffer).await?;
        if count == 0 {
            to.shutdown().await?;
            return Ok(End::Closed);
        }
    }
}

/// Swallows what still comes, so that the sender is not held up by a full socket, and says nothing.
async fn stalled(from: &mut ReadHalf<'_>) -> io::Result<End> {
    let swallow = async {
        let mut buffer = vec![0; READ_BYTES];
        while from.read(&mut buffer).await? > 0 {}
        // Its end is not passed on either.
        std::future::pending::<io::Result<End>>().await
    };
    tokio::time::timeout(MOST_HELD, swallow).await.unwrap_or(Ok(End::Close))
}
