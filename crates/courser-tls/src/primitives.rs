//! The cryptographic library's single operations, to be timed by whoever has a clock.

/// Name and version of the cryptographic library, as `AWS-LC 5.12.0`.
pub fn library_version() -> String {
    format!("AWS-LC {}", aws_lc_rs::awslc_version())
}
