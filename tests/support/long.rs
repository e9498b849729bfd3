//! Whether a suite plays its long form, as CI does with an optimised build; the short one plays a part of the same worlds.

/// One of these, as `POOLKEEPER_LONG` is set or not.
pub fn long_or<T>(long: T, short: T) -> T {
    if std::env::var_os("POOLKEEPER_LONG").is_some() { long } else { short }
}
