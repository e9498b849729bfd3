//! One token for all: one request at a time, the old one while a renewal fails, none that was refused.

use std::sync::Arc;
use std::time::Duration;

use poolkeeper::adapters::azure::auth::{AuthFailureReason, TokenCache, TokenSource, Way};
use poolkeeper::model::time::Span;

use crate::auth::sts::{Paused, Reply, Sts, TOKEN, by, get};

fn secret(sts: &Arc<Sts>) -> Arc<TokenCache<Paused>> {
    Arc::new(sts.tokens(by(Way::ClientSecret)))
}

fn bearer(n: usize) -> String {
    format!("Bearer {TOKEN}-{n}")
}

const HOUR: Reply = Reply::Token(Span::hours(1));

async fn minutes(n: u64) {
    tokio::time::advance(Duration::from_secs(60 * n)).await;
}

#[tokio::test(start_paused = true)]
async fn twenty_callers_make_one_request() {
    let sts = Sts::always(Reply::Slowly(Span::seconds(2)));
    let tokens = secret(&sts);
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let tokens = Arc::clone(&tokens);
            tokio::spawn(async move { get(&tokens).await })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), bearer(1));
    }
    assert_eq!(sts.count(), 1);
    // Neither does the next one, nor a caller who was cut off keep the others waiting.
    assert_eq!(get(&tokens).await, bearer(1));
    minutes(70).await;
    let cut = tokio::spawn({
        let tokens = Arc::clone(&tokens);
        async move { get(&tokens).await }
    });
    let other = tokio::spawn({
        let tokens = Arc::clone(&tokens);
        async move { get(&tokens).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    cut.abort();
    assert_eq!(other.await.unwrap(), bearer(3));
    assert_eq!(sts.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_at_half_of_its_life_by_one_and_the_others_do_not_wait() {
    let sts = Sts::always(HOUR);
    let tokens = secret(&sts);
    assert_eq!(get(&tokens).await, bearer(1));
    minutes(29).await;
    assert_eq!((get(&tokens).await, sts.count()), (bearer(1), 1));
    minutes(1).await;
    sts.now_says(Reply::Slowly(Span::seconds(5)));
    let renews = tokio::spawn({
        let tokens = Arc::clone(&tokens);
        async move { get(&tokens).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = sts.clock.passed();
    assert_eq!(get(&tokens).await, bearer(1));
    assert_eq!(sts.clock.passed(), before, "nobody waits while the old one lives");
    assert_eq!(renews.await.unwrap(), bearer(2));
    assert_eq!((get(&tokens).await, sts.count()), (bearer(2), 2));
}

#[tokio::test(start_paused = true)]
async fn the_old_one_serves_while_a_renewal_fails_and_not_longer_than_it_lives() {
    let sts = Sts::always(HOUR);
    let tokens = secret(&sts);
    assert_eq!(get(&tokens).await, bearer(1));
    sts.now_says(Reply::Status(503, "<html>busy</html>".into()));
    minutes(31).await;
    assert_eq!((get(&tokens).await, sts.count()), (bearer(1), 2));
    assert_eq!((get(&tokens).await, sts.count()), (bearer(1), 2), "not asked for at each call");
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!((get(&tokens).await, sts.count()), (bearer(1), 3));
    sts.now_says(Reply::Hangs);
    minutes(1).await;
    let before = sts.clock.passed();
    assert_eq!(get(&tokens).await, bearer(1));
    assert_eq!(sts.clock.passed().millis() - before.millis(), 10_000, "who renews waits so long");
    minutes(30).await;
    let failed = tokens.token().await.unwrap_err();
    assert_eq!(failed.tried[0].why, AuthFailureReason::Late(10));
    assert_eq!(failed.to_string(), "no token by client secret: no answer within 10 s");
    assert!(!failed.is_final());
    // Others who ask just after hear the same, and nobody is asked again.
    let count = sts.count();
    assert_eq!(tokens.token().await.unwrap_err(), failed);
    assert_eq!(sts.count(), count);
    sts.now_says(HOUR);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(get(&tokens).await, bearer(count + 1));
}

#[tokio::test(start_paused = true)]
async fn one_that_was_refused_is_not_given_out_again() {
    let sts = Sts::always(HOUR);
    let tokens = secret(&sts);
    let first = tokens.token().await.unwrap();
    tokens.refused(&first);
    let second = tokens.token().await.unwrap();
    assert_eq!((get(&tokens).await, sts.count()), (bearer(2), 2));
    tokens.refused(&first);
    assert_eq!((get(&tokens).await, sts.count()), (bearer(2), 2), "the refusal of an old one");
    tokens.refused(&second);
    sts.now_says(Reply::Breaks);
    assert!(tokens.token().await.is_err(), "not even while there is no other");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_while_it_is_renewed_does_not_come_back() {
    let sts = Sts::always(HOUR);
    let tokens = secret(&sts);
    let first = tokens.token().await.unwrap();
    minutes(31).await;
    sts.now_says(Reply::Hangs);
    let renews = tokio::spawn({
        let tokens = Arc::clone(&tokens);
        async move { tokens.token().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokens.refused(&first);
    assert!(renews.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_clock_far_ahead_does_not_make_a_storm_of_requests() {
    // A token that is over when it comes: each turn asks once.
    let sts = Sts::always(Reply::Token(Span::seconds(10)));
    let tokens = secret(&sts);
    assert_eq!(get(&tokens).await, bearer(1));
    assert_eq!(get(&tokens).await, bearer(2));
    assert_eq!(sts.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_has_no_token_asks_ever_more_rarely_and_no_sooner_than_told() {
    let asked_for = async |reply: Reply, seconds: u64| {
        let sts = Sts::always(reply);
        let tokens = secret(&sts);
        for _ in 0..seconds {
            assert!(tokens.token().await.is_err());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        sts.count()
    };
    // At 0, 5, 15, 35, 75 and 155 seconds, and then every 80.
    let gone = || Reply::Status(410, "{}".into());
    for (seconds, times) in [(5, 1), (6, 2), (36, 4), (156, 6), (235, 6), (236, 7)] {
        assert_eq!(asked_for(gone(), seconds).await, times, "{seconds} s");
    }
    for (seconds, times) in [(60, 1), (61, 2), (122, 3)] {
        assert_eq!(asked_for(Reply::Later(429, 60), seconds).await, times, "{seconds} s");
    }
    assert_eq!(asked_for(Reply::Later(503, 86_400), 601).await, 2, "ten minutes at most");
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_the_waits() {
    let sts = Sts::always(Reply::Status(410, "{}".into()));
    let tokens = secret(&sts);
    for _ in 0..75 {
        assert!(tokens.token().await.is_err());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    sts.now_says(HOUR);
    tokens.token().await.unwrap();
    minutes(61).await;
    sts.now_says(Reply::Breaks);
    assert!(tokens.token().await.is_err());
    sts.now_says(HOUR);
    tokio::time::advance(Duration::from_secs(5)).await;
    tokens.token().await.unwrap();
}
