//! The drills: what is broken, and how one knows that it was.

use super::world::World;
use anyhow::Result;
use std::time::Duration;

/// One drill.
pub(super) struct Drill {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Habits of the clients, as flags of the load.
    pub(super) load: &'static str,
    /// Rules of the fault proxies before the engines, as TOML.
    pub(super) rules: &'static str,
    /// Proxies that play them; the others relay unharmed.
    pub(super) proxies: usize,
    /// What is done while the load runs.
    pub(super) act: fn(&mut World) -> Result<()>,
    pub(super) bite: Bite,
}

/// How one knows that a fault was felt. A drill whose fault was not is no proof.
#[derive(Clone, Copy)]
pub(super) enum Bite {
    /// Streams broke openly, or requests were tried again behind the gateway.
    Streams,
    /// The proxies hit connections.
    Proxies,
    /// Clients with this habit asked.
    Habit(&'static str),
    /// Both gateways were replaced and ended by themselves.
    Restarts,
}

/// Time before anything happens: streams are under way by then.
const CALM: Duration = Duration::from_secs(3);
const WHILE: Duration = Duration::from_secs(3);

pub(super) const DRILLS: [Drill; 9] = [
    Drill {
        name: "cancel",
        about: "a third of the clients hang up in the middle",
        load: "--cancel-percent 33",
        rules: "",
        proxies: 0,
        act: |_| Ok(()),
        bite: Bite::Habit("cancels"),
    },
    Drill {
        name: "kill",
        about: "kill -9 of one engine, then of another; both come back",
        load: "",
        rules: "",
        proxies: 0,
        act: |world| {
            for engine in [0, 1] {
                pause(CALM);
                world.kill_engine(engine)?;
                pause(WHILE);
                world.start_engine(engine)?;
            }
            Ok(())
        },
        bite: Bite::Streams,
    },
    Drill {
        name: "stop",
        about: "SIGSTOP of one engine for five seconds",
        load: "",
        rules: "",
        proxies: 0,
        act: |world| {
            pause(CALM);
            world.signal_engine(2, "STOP")?;
            pause(Duration::from_secs(5));
            world.signal_engine(2, "CONT")
        },
        bite: Bite::Streams,
    },
    Drill {
        name: "truncate",
        about: "answers of two engines are closed in order in the middle of the stream",
        load: "",
        rules: "[[rules]]\naction = \"truncate\"\nafter_bytes = 6000\nshare = 0.3\n\
                [[rules]]\naction = \"reset\"\nafter_bytes = 9000\nshare = 0.3",
        proxies: 2,
        act: |_| Ok(()),
        bite: Bite::Proxies,
    },
    Drill {
        name: "garbage",
        about: "bytes of answers of two engines are changed, doubled, and cut into single ones",
        load: "",
        rules: "[[rules]]\naction = \"flip\"\nafter_bytes = 5000\nbytes = 300\nshare = 0.3\n\
                [[rules]]\naction = \"duplicate\"\nafter_bytes = 3000\nshare = 0.2\n\
                [[rules]]\naction = \"split\"\nafter_bytes = 20000\nshare = 0.1",
        proxies: 2,
        act: |_| Ok(()),
        bite: Bite::Proxies,
    },
    Drill {
        name: "slow-clients",
        about: "a third of the clients read 256 bytes every 40 ms",
        load: "--slow-percent 33",
        rules: "",
        proxies: 0,
        act: |_| Ok(()),
        bite: Bite::Habit("slow"),
    },
    Drill {
        name: "half-closed",
        about: "clients and engines that close one side of their sockets",
        load: "--half-close-percent 25",
        // Not the way to the engines: a request that is cut there is answered with 4xx, and nobody
        // before can know that the engine did not mean it.
        rules: "[[rules]]\naction = \"half-close\"\nafter_bytes = 5000\nshare = 0.3",
        proxies: 2,
        act: |_| Ok(()),
        bite: Bite::Proxies,
    },
    Drill {
        name: "restart",
        about: "SIGTERM of one gateway after the other, each replaced on its port",
        load: "",
        rules: "",
        proxies: 0,
        act: |world| {
            for gateway in [0, 1] {
                pause(CALM);
                world.restart_gateway(gateway)?;
            }
            Ok(())
        },
        bite: Bite::Restarts,
    },
    Drill {
        name: "brown-out",
        about: "for four seconds three of four engines answer late and slowly or refuse",
        load: "",
        rules: "[[rules]]\naction = \"delay\"\nmilliseconds = 150\njitter_milliseconds = 300\n\
                during = \"3s..7s\"\nshare = 0.7\n\
                [[rules]]\naction = \"refuse\"\nduring = \"3s..7s\"\nshare = 0.4",
        proxies: 3,
        act: |_| Ok(()),
        bite: Bite::Proxies,
    },
];

fn pause(time: Duration) {
    std::thread::sleep(time);
}
