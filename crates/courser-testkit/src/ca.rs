//! A throw-away certificate authority and the certificates it issues.
//!
//! Validity is fixed, not relative to now (2020 to 2099, or a past or future year when a test needs it), so that a
//! test's outcome does not depend on the day it runs.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, CustomExtension,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, RevokedCertParams, RsaKeySize, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

use crate::Folder;

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// ECDSA on P-256, self-styled `EC256` in the PROXY protocol.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// RSA with a 2048 bit modulus.
    Rsa2048,
    /// Ed25519.
    Ed25519,
}

/// Contents of a leaf certificate, for [`TestCa::issue`].
#[derive(Clone, Debug)]
pub struct Leaf {
    key: KeyType,
    names: Vec<String>,
    called: Option<String>,
    years: (i32, i32),
    end: Option<SystemTime>,
    purpose: ExtendedKeyUsagePurpose,
    must_staple: bool,
}

impl Leaf {
    /// A currently valid certificate for `localhost`, `127.0.0.1` and `::1`.
    pub fn new(key: KeyType) -> Self {
        Self {
            key,
            names: ["localhost", "127.0.0.1", "::1"].map(Into::into).into(),
            called: None,
            years: (2020, 2099),
            end: None,
            purpose: ExtendedKeyUsagePurpose::ServerAuth,
            must_staple: false,
        }
    }

    /// Replaces the names: DNS names (wildcards too) and IP addresses. The first is also the common name.
    pub fn names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes it one for a client of this name.
    pub fn of_client(self, name: &str) -> Self {
        Self { purpose: ExtendedKeyUsagePurpose::ClientAuth, ..self.names([name]) }
    }

    /// Makes it one for a responder of this name, which answers about certificates for its authority (RFC 6960, section
    /// 4.2.2.2).
    pub fn of_responder(self, name: &str) -> Self {
        Self { purpose: ExtendedKeyUsagePurpose::OcspSigning, ..self.names([name]) }
    }

    /// Makes it demand a staple (RFC 7633).
    pub fn with_must_staple(self) -> Self {
        Self { must_staple: true, ..self }
    }

    /// Sets the common name, which is the first of the names otherwise.
    pub fn with_common_name(self, name: &str) -> Self {
        Self { called: Some(name.to_owned()), ..self }
    }

    /// Makes it end at this time: for tests of what happens then.
    pub fn with_expiry(self, end: SystemTime) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Makes it valid in 2020 only.
    pub fn expired(mut self) -> Self {
        self.years = (2020, 2021);
        self
    }

    /// Makes it valid from 2098 on.
    pub fn not_yet_valid(mut self) -> Self {
        self.years = (2098, 2099);
        self
    }
}

/// A root, optionally intermediates under it, that live as long as the test.
pub struct TestCa {
    root: CertifiedIssuer<'static, KeyPair>,
    /// The one that signs leaves first.
    intermediates: Vec<CertifiedIssuer<'static, KeyPair>>,
}

impl TestCa {
    /// A root that signs leaves itself: chains of one certificate.
    pub fn new() -> Self {
        Self::named("courser test root")
    }

    /// As [`TestCa::new`], by another name: clients and servers distinguish authorities by their names.
    pub fn named(name: &str) -> Self {
        let root = CertifiedIssuer::self_signed(authority(name), key_pair(KeyType::EcdsaP256))
            .expect("fixed parameters of an authority are valid");
        Self { root, intermediates: Vec::new() }
    }

    /// As [`TestCa::named`] `expired authority`, whose own certificate was valid in 2020 only.
    pub fn expired() -> Self {
        let mut params = authority("expired authority");
        params.not_after = date_time_ymd(2021, 1, 1);
        let root = CertifiedIssuer::self_signed(params, key_pair(KeyType::EcdsaP256))
            .expect("fixed parameters of an authority are valid");
        Self { root, intermediates: Vec::new() }
    }

    /// A root and one intermediate that signs the leaves: chains of two certificates, as public authorities issue.
    pub fn with_intermediate() -> Self {
        Self::new().extended("courser test intermediate")
    }

    /// The same with one more intermediate, by this name, which signs the leaves from now on.
    pub fn extended(mut self, name: &str) -> Self {
        let mut params = authority(name);
        params.use_authority_key_identifier_extension = true;
        let issuer = self.intermediates.first().unwrap_or(&self.root);
        params.serial_number = Some(INTERMEDIATE.into());
        let intermediate = CertifiedIssuer::signed_by(params, key_pair(KeyType::EcdsaP256), issuer)
            .expect("fixed parameters of an authority are valid");
        self.intermediates.insert(0, intermediate);
        self
    }

    /// A leaf with `count` intermediates that all have one name and one key, and of which each has signed all: as many
    /// paths lead upwards as there are sequences of them, and none to a trusted authority.
    ///
    /// # Panics
    /// As [`TestCa::issue`].
    pub fn crossed(leaf: &Leaf, count: u64) -> Issued {
        let Self { root: crossed, .. } = Self::named("crossed");
        let key = key_pair(leaf.key);
        let certificate =
            leaf_params(leaf).signed_by(&key, &crossed).expect("parameters of a leaf are valid");
        let mut chain_pem = certificate.pem();
        for number in 0..count {
            let mut params = authority("crossed");
            params.serial_number = Some(number.into());
            let again = params.signed_by(crossed.key(), &crossed).expect("as the first");
            chain_pem.push_str(&again.pem());
        }
        Issued { chain_pem, key_pem: key.serialize_pem(), certificate: certificate.der().clone(), serial: 0 }
    }

    /// The list (RFC 5280, section 5) of these certificates as revoked, in PEM, by who signs leaves. The next one is due in
    /// 2099.
    ///
    /// # Panics
    /// As [`TestCa::issue`].
    pub fn revocation_list(&self, revoked: &[&Issued]) -> String {
        self.revocation_list_until(revoked, date_time_ymd(2099, 1, 1).into())
    }

    /// As [`TestCa::revocation_list`], with the next one due at this time.
    ///
    /// # Panics
    /// As [`TestCa::issue`].
    pub fn revocation_list_until(&self, revoked: &[&Issued], next_update: SystemTime) -> String {
        let issuer = self.intermediates.first().unwrap_or(&self.root);
        list(issuer, revoked.iter().map(|issued| issued.serial), next_update)
    }

    /// The root's list, with all intermediates on it or none.
    ///
    /// # Panics
    /// As [`TestCa::issue`].
    pub fn revocation_list_of_root(&self, revoked: bool) -> String {
        list(&self.root, revoked.then_some(INTERMEDIATE), date_time_ymd(2099, 1, 1).into())
    }

    /// Issues a certificate with a fresh key; those of RSA keys share one.
    ///
    /// # Panics
    /// When a name is neither a DNS name nor an IP address.
    pub fn issue(&self, leaf: &Leaf) -> Issued {
        let key = key_pair(leaf.key);
        let issuer = self.intermediates.first().unwrap_or(&self.root);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut params = leaf_params(leaf);
        params.serial_number = Some(serial.into());
        let certificate = params.signed_by(&key, issuer).expect("parameters of a leaf are valid");
        let mut chain_pem = certificate.pem();
        chain_pem.extend(self.intermediates.iter().map(CertifiedIssuer::pem));
        let (key_pem, certificate) = (key.serialize_pem(), certificate.der().clone());
        Issued { chain_pem, key_pem, certificate, serial }
    }

    /// A certificate for `localhost` in one combined file `NAME.pem`: what most tests need.
    pub fn localhost(&self, key: KeyType, folder: &Folder, name: &str) -> PathBuf {
        self.issue(&Leaf::new(key)).write_combined(folder, name)
    }

    /// The root's certificate, for a client to trust.
    pub fn root(&self) -> CertificateDer<'static> {
        self.root.der().clone()
    }

    /// Writes the root's certificate to `ca.pem`, for `curl --cacert` and `openssl s_client -CAfile`.
    pub fn write_root(&self, folder: &Folder) -> PathBuf {
        folder.write("ca.pem", self.root_pem())
    }

    /// The root's private key in PEM, for programs that answer for it.
    pub fn root_key_pem(&self) -> String {
        self.root.key().serialize_pem()
    }

    /// The root's certificate in PEM.
    pub fn root_pem(&self) -> String {
        self.root.pem()
    }
}

impl Default for TestCa {
    fn default() -> Self {
        Self::new()
    }
}

/// A certificate with its chain and private key.
#[derive(Clone)]
pub struct Issued {
    /// The leaf, then the intermediates if there are any, upwards; the root is left out.
    pub chain_pem: String,
    /// The private key, PKCS #8.
    pub key_pem: String,
    /// The leaf.
    pub certificate: CertificateDer<'static>,
    /// Its serial number.
    pub serial: u64,
}

impl Issued {
    /// Writes chain and key into one file, `NAME.pem`, mode 0600.
    pub fn write_combined(&self, folder: &Folder, name: &str) -> PathBuf {
        folder.write(&format!("{name}.pem"), format!("{}{}", self.chain_pem, self.key_pem))
    }

    /// Writes `NAME.crt` and `NAME.key`, both mode 0600.
    pub fn write_pair(&self, folder: &Folder, name: &str) -> Pair {
        let chain = folder.write(&format!("{name}.crt"), &self.chain_pem);
        let key = folder.write(&format!("{name}.key"), &self.key_pem);
        Pair { chain, key }
    }
}

/// A certificate in two files.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Chain, leaf first.
    pub chain: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

impl Pair {
    /// As `courser serve --cert` wants two files: `chain.crt,key=chain.key`.
    pub fn as_flag(&self) -> String {
        let text = |path: &Path| path.display().to_string();
        format!("{},key={}", text(&self.chain), text(&self.key))
    }
}

/// The serial number of every intermediate.
const INTERMEDIATE: u64 = 7;

/// id-pe-tlsfeature.
const TLS_FEATURE: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 24];

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1 << 40);

fn list(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    revoked: impl IntoIterator<Item = u64>,
    next_update: SystemTime,
) -> String {
    let entry = |serial: u64| RevokedCertParams {
        serial_number: serial.into(),
        revocation_time: date_time_ymd(2021, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: next_update.into(),
        crl_number: 1u64.into(),
        issuing_distribution_point: None,
        revoked_certs: revoked.into_iter().map(entry).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(issuer).and_then(|list| list.pem()).expect("fixed parameters of a list are valid")
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 12, 31);
    params
}

fn leaf_params(leaf: &Leaf) -> CertificateParams {
    let mut params = CertificateParams::new(leaf.names.clone()).expect("names are DNS names or IP addresses");
    if let Some(name) = leaf.called.as_ref().or(leaf.names.first()) {
        params.distinguished_name.push(DnType::CommonName, name.as_str());
    }
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![leaf.purpose.clone()];
    if leaf.must_staple {
        // SEQUENCE OF INTEGER with status_request in it.
        let features = vec![0x30, 3, 2, 1, 5];
        params.custom_extensions.push(CustomExtension::from_oid_content(TLS_FEATURE, features));
    }
    params.not_before = date_time_ymd(leaf.years.0, 1, 1);
    params.not_after = leaf.end.map_or(date_time_ymd(leaf.years.1, 1, 1), Into::into);
    params
}

/// A fresh key; of RSA, which takes some hundred milliseconds to make, always the process's only one.
fn key_pair(key: KeyType) -> KeyPair {
    static RSA: LazyLock<KeyPair> = LazyLock::new(|| {
        KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("aws-lc-rs makes RSA keys")
    });
    match key {
        KeyType::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyType::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyType::Rsa2048 => KeyPair::try_from(RSA.serialized_der()),
        KeyType::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
    }
    .expect("aws-lc-rs makes keys of all these kinds")
}
