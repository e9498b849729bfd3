//! Who we are to Azure.
