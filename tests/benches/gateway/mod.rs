//! The gateway as it is run, next to a plain proxy and to gateways that users would choose instead: what each adds to streams and requests.
//!
//! Model and clients are this process, which has what the machine leaves of its processors: what a proxy adds is more than it would be alone,
//! and all are measured in the same way, in turn.

mod load;
mod upstream;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tidegate_servers::Peer;

use self::load::{Measured, Target};
use self::upstream::Question;
use crate::support::guests::place_plugins;
use crate::support::{Aim, Table, median};

/// How many streams, for how many frames each, at 50 frames a second.
const STREAMS: [(u32, u64); 3] = [(1, 150), (100, 150), (1_000, 150)];
const EVERY: Duration = Duration::from_millis(20);
const ROUNDS: usize = 3;

/// Plugins that get every line of an answer.
const PLUGINS: [&str; 3] = ["mask-secrets", "redact-secrets", "session-notes"];
const WHOLE: &str = "with 200 rules and three plugins";

pub(crate) fn bench() {
    let mut table = Table::new("gateway");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let start = Instant::now();
    let model = runtime.block_on(upstream::serve(start));
    let rules = include_str!("../sets/personal.txt");
    let (open, guarded) = (Guard::start("open", model, "", &[]), Guard::start("rules", model, rules, &[]));
    let whole = Guard::start("plugins", model, rules, &PLUGINS);
    let mut targets = vec![
        Target { name: "no proxy", address: model, path: "", headers: String::new() },
        open.target("without rules"),
        guarded.target("with 200 rules"),
        whole.target(WHOLE),
    ];
    let peers: Vec<Result<Peer, String>> =
        Peer::all(model).into_iter().map(|(name, peer)| peer.map_err(|why| format!("{name}: {why:#}"))).collect();
    for peer in &peers {
        match peer {
            Ok(peer) => {
                let headers = peer.headers.clone();
                targets.push(Target { name: peer.name, address: peer.address, path: "", headers });
            }
            Err(why) => table.missing("a peer", why),
        }
    }
    memory(&mut table, &runtime, &whole, &targets[3], start);
    for (count, frames) in STREAMS {
        let question = Question { frames, every: EVERY };
        let all = measure(&runtime, &targets, count, question, start);
        streams(&mut table, count, &targets, &all);
    }
    rates(&mut table, &runtime, &targets);
    table.finish();
}

/// What was measured in each round, or why nothing was.
type Rounds = Result<Vec<Measured>, String>;

/// Measures each target in turn, a few times. One that fails once is left out.
fn measure(
    runtime: &tokio::runtime::Runtime,
    targets: &[Target],
    count: u32,
    question: Question,
    start: Instant,
) -> Vec<Rounds> {
    let mut all: Vec<Rounds> = targets.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (target, rounds) in targets.iter().zip(&mut all) {
            let Ok(measured) = rounds else { continue };
            match runtime.block_on(target.streams(count, question, start)) {
                Ok(one) => measured.push(one),
                Err(why) => *rounds = Err(why),
            }
            // What one leaves behind must not count for the next.
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    all
}

/// A figure of one round.
type Figure = dyn Fn(&Measured) -> f64;

fn streams(table: &mut Table, count: u32, targets: &[Target], all: &[Rounds]) {
    let of = |rounds: &[Measured], value: &Figure| median(rounds.iter().map(value).collect());
    let kinds: [(&str, &Figure); 4] = [
        ("a frame, median", &|one| one.frames.at(0.5)),
        ("a frame, 99th of 100", &|one| one.frames.at(0.99)),
        ("the first frame, median", &|one| one.first.at(0.5)),
        ("the first frame, 99th of 100", &|one| one.first.at(0.99)),
    ];
    for (what, value) in kinds {
        let direct = all[0].as_deref().map_or(0.0, |rounds| of(rounds, value));
        let plain = targets.iter().position(|one| one.name == "nginx").and_then(|at| all[at].as_ref().ok());
        for (target, rounds) in targets.iter().zip(all) {
            let name = format!("{count} streams: {what}, {}", target.name);
            let rounds = match rounds {
                Ok(rounds) => rounds,
                Err(why) => {
                    table.missing(&name, why);
                    continue;
                }
            };
            let aim = match (target.name, what) {
                (WHOLE, "a frame, 99th of 100") if count == 1_000 => Aim::AtMost((300.0 + direct).round() / 1e3),
                _ => Aim::None,
            };
            table.row(&name, aim, of(rounds, value) / 1e3, "ms");
        }
        if let (Ok(own), Some(plain)) = (&all[1], plain) {
            // Within a round, so that a busy moment counts for both.
            let ratios = own.iter().zip(plain).map(|(own, plain)| value(own) / value(plain)).collect();
            table.row(&format!("– without rules ÷ nginx, {what}"), Aim::AtMost(1.3), median(ratios), "×");
        }
    }
}

/// Measures what a stream takes while it runs. It must come first: a program keeps memory that it has had.
fn memory(table: &mut Table, runtime: &tokio::runtime::Runtime, guard: &Guard, target: &Target, start: Instant) {
    // Slow, so that nothing waits for a processor.
    let question = Question { frames: 25, every: Duration::from_millis(200) };
    let (before, during) = runtime.block_on(async {
        target.streams(10, Question { frames: 2, ..question }, start).await.unwrap();
        let before = guard.memory_kb();
        let streams = target.streams(1_000, question, start);
        let looked = async {
            // All have begun after a second, and none has ended.
            tokio::time::sleep(Duration::from_millis(3_000)).await;
            guard.memory_kb()
        };
        let (measured, during) = tokio::join!(streams, looked);
        measured.unwrap();
        (before, during)
    });
    table.row(&format!("memory of a stream, 1,000 streams {WHOLE}"), Aim::AtMost(60.0), (during - before) / 1e3, "KB");
}

fn rates(table: &mut Table, runtime: &tokio::runtime::Runtime, targets: &[Target]) {
    let mut rates = vec![Vec::new(); targets.len()];
    for _ in 0..ROUNDS {
        for (rates, target) in rates.iter_mut().zip(targets) {
            rates.extend(runtime.block_on(target.rate(64, Duration::from_secs(3))));
        }
    }
    let mut of = |name: &str| {
        let at = targets.iter().position(|one| one.name == name)?;
        Some(std::mem::take(&mut rates[at])).filter(|rates| !rates.is_empty()).map(median)
    };
    let own = of("without rules");
    let (guarded, whole) = (of("with 200 rules"), of(WHOLE));
    for (name, rate) in [("without rules", own), ("with 200 rules", guarded), (WHOLE, whole)] {
        if let Some(rate) = rate {
            table.row(&format!("requests a second of 64 clients, {name}"), Aim::None, rate, "/s");
        }
    }
    for name in ["no proxy", "nginx", "litellm", "portkey"] {
        let Some(rate) = of(name) else { continue };
        table.row(&format!("– {name}"), Aim::None, rate, "/s");
        if let (Some(guarded), "litellm") = (guarded, name) {
            table.row("– with 200 rules ÷ litellm", Aim::AtLeast(20.0), guarded / rate, "×");
        }
    }
}

/// `tidegate gateway` in front of the model.
struct Guard {
    child: Child,
    address: SocketAddr,
    place: PathBuf,
}

impl Guard {
    /// Each line of `conditions` is the condition of a rule about text.
    fn start(name: &str, model: SocketAddr, conditions: &str, plugins: &[&str]) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-gateway-{name}"));
        fs::remove_dir_all(&place).ok();
        fs::create_dir_all(place.join(".tidegate/rules")).unwrap();
        for (number, condition) in conditions.lines().enumerate() {
            let rule = format!("+++\ncondition = '''{condition}'''\nscope = \"text\"\n+++\nNever.\n");
            fs::write(place.join(format!(".tidegate/rules/rule-{number}.md")), rule).unwrap();
        }
        let plugins = place_plugins(&place, plugins);
        let settings = format!(
            "{plugins}[rules]\nbuiltin_rules = false\nuser_rules = false\n[gateway.limits]\nconcurrent = 4000\nconnections = 8000\n\
             [[gateway.route]]\npath = \"/model\"\nupstream = \"http://{model}\"\n"
        );
        fs::write(place.join("tidegate.toml"), settings).unwrap();
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("release/tidegate");
        let mut command = Command::new(program);
        command.args(["--trust-workspace", "gateway", "--listen", "127.0.0.1:0"]).current_dir(&place);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut url, mut output) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        output.read_line(&mut url).unwrap();
        // It ends when nobody reads what it prints.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let address = url.trim().strip_prefix("http://").unwrap().parse().unwrap();
        Self { child, address, place }
    }

    fn target(&self, name: &'static str) -> Target {
        Target { name, address: self.address, path: "/model", headers: String::new() }
    }

    /// Returns the memory of the program, in KB of 1,000 bytes.
    fn memory_kb(&self) -> f64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1.024
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.place));
    }
}
