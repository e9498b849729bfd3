//! The terminal's door, tried from outside: the program itself is run, and what it prints is compared.

mod goldens;
mod same;
mod stream;
mod support;
mod usage;
