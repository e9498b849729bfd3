//! The clouds: where tokens come from, what they are for, and where they are shown.

use azure_core::http::Url;

use super::token::{Origin, is_loopback};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloud {
    authority: Url,
    resource_manager: Url,
    audience: Box<str>,
}

/// An address that cannot be used for a cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCloud {
    #[error("the {what} is no address: write one such as https://management.azure.com")]
    NoAddress { what: &'static str },
    #[error("the {what} must begin with https:// (http:// only on the machine itself)")]
    NotSecure { what: &'static str },
    #[error("the audience must be an address, such as https://management.azure.com")]
    NoAudience,
}

impl Cloud {
    pub fn public() -> Self {
        Self::known("https://login.microsoftonline.com", "https://management.azure.com", None)
    }

    pub fn us_government() -> Self {
        Self::known(
            "https://login.microsoftonline.us",
            "https://management.usgovcloudapi.net",
            Some("https://management.core.usgovcloudapi.net"),
        )
    }

    pub fn china() -> Self {
        Self::known("https://login.chinacloudapi.cn", "https://management.chinacloudapi.cn", None)
    }

    /// By the names that the cloud's own tools use.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "azurecloud" | "azurepubliccloud" | "public" => Some(Self::public()),
            "azureusgovernment" | "azureusgovernmentcloud" | "usgovernment" => {
                Some(Self::us_government())
            }
            "azurechinacloud" | "china" => Some(Self::china()),
            _ => None,
        }
    }

    /// Any other. Without an audience tokens are asked for the resource manager's own address.
    pub fn custom(
        authority: &str,
        resource_manager: &str,
        audience: Option<&str>,
    ) -> Result<Self, BadCloud> {
        let authority = address("authority", authority)?;
        let resource_manager = address("resource manager", resource_manager)?;
        let audience = audience.unwrap_or(resource_manager.as_str()).trim_end_matches('/');
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-._:/".contains(c);
        if audience.is_empty() || !audience.chars().all(is_word) {
            return Err(BadCloud::NoAudience);
        }
        Ok(Self { audience: audience.into(), authority, resource_manager })
    }

    /// The same cloud with tokens from another place.
    pub fn with_authority(self, authority: &str) -> Result<Self, BadCloud> {
        Ok(Self { authority: address("authority", authority)?, ..self })
    }

    pub fn authority(&self) -> &Url {
        &self.authority
    }

    pub fn resource_manager(&self) -> &Url {
        &self.resource_manager
    }

    /// What a token is asked for.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    /// The only place where its tokens are shown.
    pub fn origin(&self) -> Origin {
        Origin::of(&self.resource_manager)
    }

    #[expect(
        clippy::expect_used,
        reason = "addresses that stand in this file, each read by a test"
    )]
    fn known(authority: &str, resource_manager: &str, audience: Option<&str>) -> Self {
        Self::custom(authority, resource_manager, audience).expect("an address that is known")
    }
}

fn address(what: &'static str, text: &str) -> Result<Url, BadCloud> {
    let url = Url::parse(text.trim()).map_err(|_| BadCloud::NoAddress { what })?;
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" | "https" => Err(BadCloud::NotSecure { what }),
        _ => Err(BadCloud::NoAddress { what }),
    }
}
