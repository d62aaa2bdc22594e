//! A new account that belongs to one which the CA has already (RFC 8555, section 7.3.4), made with a key that is on the disk.
//! The library makes such an account with a key of its own making alone, which a crash would lose with the account. May not
//! touch files.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use http::{Request, StatusCode};
use instant_acme::{BodyWrapper, Error, Problem};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::Https;
use crate::settings::{ExternalAccount, Settings};
use crate::trouble::Trouble;

/// What of the directory is needed (RFC 8555, section 7.1.1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Directory {
    new_nonce: String,
    new_account: String,
}

/// Most nonces of which the CA may say that they are none of its own (RFC 8555, section 6.5).
const MOST_NONCES: usize = 5;

/// An account.
pub(crate) struct Bound {
    pub(crate) url: String,
    /// It was not there before.
    pub(crate) is_new: bool,
}

/// Makes the account of this key (PKCS#8).
pub(crate) async fn bind(
    settings: &Settings,
    external: &ExternalAccount,
    key: &[u8],
    https: &Https,
) -> Result<Bound, Trouble> {
    let body = https.get(&settings.directory).await.map_err(Trouble::unreachable)?;
    let Directory { new_nonce, new_account } = serde_json::from_slice(&body)
        .map_err(|error| Trouble::unreachable(format!("{} is no directory: {error}", settings.directory)))?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key)
        .map_err(|error| Trouble::unreachable(format!("the account's key cannot be used: {error}")))?;
    let payload = json!({
        "contact": settings.contact,
        "termsOfServiceAgreed": true,
        "externalAccountBinding": binding(external, &key, &new_account),
    });
    let mut left = MOST_NONCES;
    loop {
        left -= 1;
        let request = Request::head(&new_nonce).body(BodyWrapper::default());
        let answer =
            https.send(request.map_err(|error| unusable(&error))?).await.map_err(Trouble::unreachable)?;
        let nonce = header(answer.headers(), "replay-nonce")
            .ok_or_else(|| Trouble::unreachable(format!("{new_nonce} gives no nonce")))?;
        let protected = json!({ "alg": "ES256", "jwk": jwk(&key), "nonce": nonce, "url": new_account });
        let signed = jws(&protected, &payload, |text| {
            key.sign(&SystemRandom::new(), text).map(|signature| signature.as_ref().to_vec())
        });
        let signed = signed.map_err(|_| Trouble::unreachable("the account's key does not sign"))?;
        let request = Request::post(&new_account).header(CONTENT_TYPE, "application/jose+json");
        let request = request
            .body(BodyWrapper::from(signed.to_string().into_bytes()))
            .map_err(|error| unusable(&error))?;
        let answer = https.send(request).await.map_err(Trouble::unreachable)?;
        if matches!(answer.status(), StatusCode::OK | StatusCode::CREATED) {
            let url = header(answer.headers(), LOCATION.as_str())
                .ok_or_else(|| Trouble::unreachable("the CA does not say where the account is"))?;
            return Ok(Bound { url, is_new: answer.status() == StatusCode::CREATED });
        }
        let problem = serde_json::from_slice::<Problem>(answer.body())
            .map_err(|_| Trouble::unreachable(format!("{new_account} answers {}", answer.status())))?;
        let trouble = Trouble::of(&Error::Api(problem), https.retry_after());
        if left == 0 || trouble.kind.as_deref() != Some("badNonce") {
            return Err(trouble);
        }
    }
}

/// The account's public key, signed with the key that the CA has given out.
fn binding(external: &ExternalAccount, key: &EcdsaKeyPair, new_account: &str) -> Value {
    let protected = json!({ "alg": "HS256", "kid": external.id, "url": new_account });
    let mac = hmac::Key::new(hmac::HMAC_SHA256, &external.key);
    let signed = jws(&protected, &jwk(key), |text| Ok::<_, ()>(hmac::sign(&mac, text).as_ref().to_vec()));
    signed.expect("a digest does not fail")
}

/// The flattened form of a signed object (RFC 7515, section 7.2.2).
fn jws<E>(
    protected: &Value,
    payload: &Value,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Value, E> {
    let [protected, payload] = [protected, payload].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(sign(format!("{protected}.{payload}").as_bytes())?);
    Ok(json!({ "protected": protected, "payload": payload, "signature": signature }))
}

/// The public key (RFC 7518, section 6.2): behind the byte that says so, the point has its coordinates whole.
fn jwk(key: &EcdsaKeyPair) -> Value {
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    json!({ "crv": "P-256", "kty": "EC", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) })
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn unusable(error: &http::Error) -> Trouble {
    Trouble::unreachable(format!("the CA's directory names what is no URL: {error}"))
}
