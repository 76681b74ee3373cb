//! Random registries of compiled plugins that change between turns: the order of callbacks, their effects, the prompt and the tools
//! are what an independent model of the contract says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod expect;
mod random;
mod world;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use world::World;

/// Sessions, each with a host of its own.
const WORLDS: u64 = 170;
/// Turns of each, each with another registry.
const TURNS: usize = 6;

/// Worlds at the same time.
const TOGETHER: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_random_registries_behave_as_the_model_says() {
    let together = Arc::new(Semaphore::new(TOGETHER));
    let mut worlds = JoinSet::new();
    for seed in 0..WORLDS {
        let together = Arc::clone(&together);
        worlds.spawn(async move {
            let _permit = together.acquire().await.unwrap();
            let mut world = World::open(seed).await;
            for _ in 0..TURNS {
                world.change().await;
                world.turn().await;
            }
            TURNS
        });
    }
    let mut registries = 0;
    while let Some(done) = worlds.join_next().await {
        registries += done.unwrap();
    }
    assert!(registries >= 1_000, "only {registries} registries were tried");
}
