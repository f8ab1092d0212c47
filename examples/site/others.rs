//! The likes of made-up persons, so that the lists move.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use rand::Rng;
use serde_json::json;

use crate::Site;
use crate::pages::random_person;
use crate::posts::POSTS;

/// Sends likes of made-up persons while the autopilot is on. A few posts are in fashion at a time, so the list moves.
pub async fn like_at_random(site: Arc<Site>) {
    let mut fashion = [0, 1, 2];
    loop {
        let pause = rand::rng().random_range(100..500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if !site.autopilot.load(Ordering::Relaxed) {
            continue;
        }
        let post = rand::rng().random_range(0..POSTS.len());
        if rand::rng().random_ratio(1, 20) {
            fashion[post % 3] = post;
        }
        let liked = if rand::rng().random_ratio(1, 3) { post } else { fashion[post % 3] };
        if let Err(error) = like(&site, &random_person(), POSTS[liked].0).await {
            eprintln!("the likes of others stop: {error}");
            site.autopilot.store(false, Ordering::Relaxed);
        }
    }
}

/// Likes a post as the page of a person does.
async fn like(site: &Site, person: &str, post: &str) -> Result<()> {
    let request = site.client.post(format!("{}/v1/events", site.rolltop)).json(&json!({}));
    request.bearer_auth(site.signer.like(person, post)?).send().await?.error_for_status()?;
    Ok(())
}
