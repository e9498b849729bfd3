//! The id of a request: random, or the same whenever a client repeats the request.

use ring::rand::{SecureRandom, SystemRandom};

use super::problem::Problem;
use super::text::{fingerprint, hex};
use crate::model::time::Time;

/// The id under which the store keeps a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id {
    pub text: String,
    /// An earlier try of the same request was not answered: it may be done already.
    pub is_repeated: bool,
}

impl Id {
    /// A random id.
    pub fn fresh() -> Result<Self, Problem> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| Problem::internal())?;
        Ok(Self { text: hex(&bytes), is_repeated: false })
    }

    /// The same for every repetition of a request, so that a second write is recognized.
    pub fn claimed(name: &str, at: Time, is_repeated: bool) -> Self {
        let text = fingerprint(&[b"ask", name.as_bytes(), &at.millis().to_be_bytes()]);
        Self { text, is_repeated }
    }
}
