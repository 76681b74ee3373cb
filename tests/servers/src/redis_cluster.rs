//! A Redis Cluster of processes on this machine.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::certificates::Certificates;
use crate::process::free_port;
use crate::redis::RedisServer;

/// The number of slots of every Cluster.
const SLOTS: usize = 16_384;
/// How long its nodes can take to agree on their slots.
const START: Duration = Duration::from_secs(30);
/// How long a node can be silent before the other ones decide that it is down, in milliseconds.
const SILENCE: &str = "1500";

/// Primaries that have a third of the slots each, and replicas. Dropping it kills them.
#[derive(Debug)]
pub struct RedisCluster {
    /// The primaries first.
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three primaries, with this number of replicas of the first one, and waits until all slots are served.
    ///
    /// # Errors
    /// As for [`RedisServer::start`], or they do not agree.
    pub fn start(replicas: usize) -> Result<Self> {
        Self::start_nodes(replicas, None)
    }

    /// Starts three primaries that take connections with TLS, too, from clients that have a certificate, and use it between each other. They
    /// announce the name of their certificate.
    ///
    /// # Errors
    /// As for [`RedisCluster::start`].
    pub fn start_tls(certificates: &Certificates) -> Result<Self> {
        Self::start_nodes(0, Some(certificates))
    }

    fn start_nodes(replicas: usize, certificates: Option<&Certificates>) -> Result<Self> {
        let nodes: Result<Vec<_>> = (0..3 + replicas).map(|_| Node::start(certificates)).collect();
        let nodes = nodes?;
        let (primaries, copies) = nodes.split_at(3);
        for (index, node) in primaries.iter().enumerate() {
            let (first, end) = (SLOTS * index / 3, SLOTS * (index + 1) / 3);
            node.server.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(end - 1).to_string()])?;
            node.server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        for node in &nodes[1..] {
            let port = node.server.tls_port().unwrap_or(node.server.port()).to_string();
            nodes[0].server.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &node.bus])?;
        }
        let all = |wanted: &str| nodes.iter().all(|node| node.shows(&["CLUSTER", "INFO"], wanted));
        let known = format!("cluster_known_nodes:{}\r", nodes.len());
        until("the nodes know each other", || all(&known) && all("cluster_state:ok"))?;
        let first = nodes[0].server.text(&["CLUSTER", "MYID"])?;
        for node in copies {
            until("a replica knows its primary", || {
                node.server.command(&["CLUSTER", "REPLICATE", first.trim()]).is_ok()
            })?;
        }
        for node in copies {
            until("a replica has the data", || node.shows(&["INFO", "replication"], "master_link_status:up"))?;
        }
        until("the nodes know the replicas", || {
            let is_known = |node: &Node| {
                let listed = node.server.text(&["CLUSTER", "NODES"]).unwrap_or_default();
                listed.lines().filter(|line| line.contains("slave")).count() == replicas
            };
            nodes.iter().all(is_known)
        })?;
        Ok(Self { nodes: nodes.into_iter().map(|node| node.server).collect() })
    }

    /// Returns the nodes, the primaries of its start first.
    pub fn nodes(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// Returns the URL with all nodes, `redis+cluster://127.0.0.1:PORT,…`.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// Returns the URL for connections with TLS, of a Cluster that has it: with the first node, which knows the other ones.
    pub fn tls_url(&self) -> String {
        format!("rediss+cluster://{}", self.nodes[0].tls_host())
    }
}

struct Node {
    server: RedisServer,
    /// The port on which the nodes speak with each other.
    bus: String,
}

impl Node {
    fn start(certificates: Option<&Certificates>) -> Result<Self> {
        let bus = free_port()?.to_string();
        let options = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", SILENCE];
        let more = ["--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"];
        let options = [&options[..], &more[..]].concat();
        let names = ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"];
        let server = match certificates {
            Some(certificates) => {
                let file = |name: &str| certificates.path(name).display().to_string();
                let (own, key) = (file("client.pem"), file("client.key"));
                // With TLS between the nodes, they announce the ports with TLS to clients that use it.
                let tls = ["--tls-cluster", "yes", "--tls-client-cert-file", &own, "--tls-client-key-file", &key];
                RedisServer::start_tls_with(certificates, true, &[&options[..], &names, &tls].concat())
            }
            None => RedisServer::start_with(&options),
        };
        let server = server.context("a node of a Cluster")?;
        Ok(Self { server, bus })
    }

    fn shows(&self, words: &[&str], wanted: &str) -> bool {
        self.server.text(words).is_ok_and(|text| text.contains(wanted))
    }
}

fn until(what: &str, mut is_done: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_done() {
        ensure!(began.elapsed() < START, "within {} s, it did not happen that {what}", START.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
