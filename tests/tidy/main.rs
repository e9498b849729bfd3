//! The rules of the house, as a test. Each rule is a function from text to what is wrong in it, proven on a
//! text that breaks it; here they are all held against the tree.
//!
//! Begin with [`rooms`] (which room may use which) and [`outside`] (which room may name which crate).

#![allow(clippy::expect_used, clippy::panic, reason = "what cannot be read fails the test")]

mod bans;
mod circles;
mod layout;
mod length;
mod lex;
mod manifest;
mod outside;
mod rooms;
mod tree;
mod words;

use tree::{Source, Violation, read, top_level};

const CODE: &[&str] = &["src", "tests", "integration"];
const TEXT: &[&str] =
    &["src", "tests", "integration", "config", ".ci", "Cargo.toml", "README.md", ".clippy.toml"];

fn nothing(broken: &[Violation]) {
    let mut broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    broken.dedup();
    assert!(broken.is_empty(), "\n\n{} broken:\n  {}\n", broken.len(), broken.join("\n  "));
}

fn everywhere(under: &[&str], rule: impl Fn(&Source) -> Vec<Violation>) {
    let sources = read(under);
    assert!(sources.iter().any(|s| s.path == "src/lib.rs"), "the tree was not read: {sources:?}");
    nothing(&sources.iter().flat_map(rule).collect::<Vec<_>>());
}

fn cargo_toml() -> Source {
    read(&["Cargo.toml"]).pop().expect("Cargo.toml that can be read")
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    everywhere(&["src"], rooms::check);
}

#[test]
fn files_of_a_room_use_each_other_in_one_direction() {
    nothing(&circles::check(&read(&["src"]), circles::ROOMS));
}

#[test]
fn outside_crates_are_named_only_in_their_rooms() {
    everywhere(&["src"], outside::check);
    let manifest = cargo_toml();
    let dependencies = manifest::dependencies(&manifest);
    assert!(dependencies.iter().any(|d| d.name == "thiserror"), "{dependencies:?}");
    nothing(&outside::check_manifest(&manifest, &dependencies));
}

#[test]
fn functions_fit_a_screen_and_files_a_sitting() {
    everywhere(CODE, |source| length::check(source, length::LONGER));
    nothing(&length::check_exceptions(&read(CODE), length::LONGER));
}

#[test]
fn nothing_banned_is_used() {
    everywhere(CODE, bans::check);
}

#[test]
fn no_marker_and_no_path_of_one_machine_is_left() {
    everywhere(TEXT, bans::check_text);
}

#[test]
fn types_have_the_nouns_of_the_field() {
    everywhere(&["src"], words::check_nouns);
    nothing(&words::check_once(&read(&["src"])));
}

#[test]
fn comments_and_messages_name_the_actor() {
    everywhere(&["src", "config", "README.md"], words::check_vague);
}

#[test]
fn the_top_level_holds_what_it_may() {
    nothing(&layout::check_top_level(&top_level()));
}

#[test]
fn doors_and_roots_are_in_order() {
    everywhere(CODE, layout::check_door);
    everywhere(&["src"], layout::check_roots);
}

#[test]
fn every_file_is_reached_and_every_target_named() {
    let manifest = cargo_toml();
    let targets = manifest::targets(&manifest);
    let sources = read(CODE);
    nothing(&layout::check_reached(&sources, &targets));
    nothing(&layout::check_targets(&manifest, &targets, &sources));
}

#[test]
fn failures_that_proptest_found_are_played_again() {
    nothing(&layout::check_failures(&read(CODE)));
}

#[cfg(unix)]
#[test]
fn the_checks_of_ci_can_be_started() {
    use std::os::unix::fs::PermissionsExt;
    let run = std::fs::metadata(tree::root().join(".ci/run")).expect(".ci/run");
    assert_ne!(run.permissions().mode() & 0o111, 0, ".ci/run: chmod +x");
}
