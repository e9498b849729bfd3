//! What operators deploy: each file is read as they would have it read.

mod settings;
