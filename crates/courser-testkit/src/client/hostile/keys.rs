//! The keys of one direction: records sealed and opened as the RFCs define, whatever is in them. No limit is checked and no
//! order of messages is known here.

use aws_lc_rs::{
    aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    hmac,
};
use rustls::CipherSuite;

use super::{APPLICATION_DATA, HEADER};

/// Sealing and opening of one direction's records. Each advances its sequence number.
pub struct Keys {
    suite: Suite,
    form: Form,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

/// What a version makes of the keys.
enum Form {
    /// RFC 8446, section 5.2; the traffic secret leads to the next keys.
    Tls13 { secret: Vec<u8> },
    /// RFC 5246, section 6.2.3.3.
    Tls12,
}

impl Keys {
    /// Those of a TLS 1.3 traffic secret (RFC 8446, section 7.3).
    pub(super) fn tls13(suite: Suite, secret: Vec<u8>) -> Self {
        let key = suite.expand(&secret, "key", suite.aead.key_len());
        let iv = suite.expand(&secret, "iv", 12).try_into().expect("12 bytes");
        Self { suite, form: Form::Tls13 { secret }, key: suite.key(&key), iv, sequence: 0 }
    }

    /// Both directions of TLS 1.2, the client's first (RFC 5246, section 6.3): the salts of GCM have four bytes
    /// (RFC 5288), the IVs of ChaCha20 twelve (RFC 7905).
    pub(super) fn tls12(
        suite: Suite,
        master: &[u8],
        client_random: &[u8],
        server_random: &[u8],
    ) -> [Self; 2] {
        let (key, iv) = (suite.aead.key_len(), if suite.is_chacha() { 12 } else { 4 });
        let seed = [b"key expansion", server_random, client_random].concat();
        let block = suite.prf(master, &seed, 2 * (key + iv));
        [0, 1].map(|side| {
            let salt = &block[2 * key + side * iv..][..iv];
            let mut whole = [0; 12];
            whole[..iv].copy_from_slice(salt);
            let key = suite.key(&block[side * key..][..key]);
            Self { suite, form: Form::Tls12, key, iv: whole, sequence: 0 }
        })
    }

    /// A record with this content. `padding` zero bytes stand behind it in TLS 1.3, and nothing in TLS 1.2, which has
    /// none. Content that is longer than allowed is accepted.
    ///
    /// # Panics
    /// When the record's length does not fit into its header.
    pub fn seal(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let mut sealed = content.to_vec();
        let (outer, explicit) = match &self.form {
            Form::Tls13 { .. } => {
                sealed.push(kind);
                sealed.resize(sealed.len() + padding, 0);
                (APPLICATION_DATA, Vec::new())
            }
            Form::Tls12 if self.suite.is_chacha() => (kind, Vec::new()),
            Form::Tls12 => (kind, self.sequence.to_be_bytes().to_vec()),
        };
        let length = match self.form {
            Form::Tls13 { .. } => sealed.len() + self.suite.aead.tag_len(),
            Form::Tls12 => sealed.len(),
        };
        let aad = self.aad(outer, length);
        let nonce = self.nonce(&explicit);
        self.key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut sealed).expect("it is short enough");
        self.sequence += 1;
        super::plain_record(outer, &[explicit, sealed].concat())
    }

    /// Content type and content of a whole record; none when it is not authentic, or nothing but padding.
    pub fn open(&mut self, record: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (header, body) = record.split_at_checked(HEADER)?;
        let explicit = if matches!(self.form, Form::Tls12) && !self.suite.is_chacha() { 8 } else { 0 };
        let (explicit, sealed) = body.split_at_checked(explicit)?;
        let length = match self.form {
            Form::Tls13 { .. } => sealed.len(),
            Form::Tls12 => sealed.len().checked_sub(self.suite.aead.tag_len())?,
        };
        let (aad, nonce) = (self.aad(header[0], length), self.nonce(explicit));
        let mut content = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(aad), &mut content).ok()?.len();
        content.truncate(opened);
        self.sequence += 1;
        match self.form {
            Form::Tls12 => Some((header[0], content)),
            Form::Tls13 { .. } => {
                let kind = content.iter().rposition(|&byte| byte != 0)?;
                let rest = content.split_off(kind);
                Some((rest[0], content))
            }
        }
    }

    /// Goes on to the next traffic secret (RFC 8446, section 7.2).
    ///
    /// # Panics
    /// In TLS 1.2.
    pub fn update(&mut self) {
        let Form::Tls13 { secret } = &self.form else { panic!("TLS 1.2 has no key updates") };
        let next = self.suite.expand(secret, "traffic upd", secret.len());
        *self = Self::tls13(self.suite, next);
    }

    fn aad(&self, outer: u8, length: usize) -> Vec<u8> {
        let length = u16::try_from(length).expect("the length fits into a header").to_be_bytes();
        let header = [outer, 3, 3, length[0], length[1]];
        match self.form {
            Form::Tls13 { .. } => header.to_vec(),
            Form::Tls12 => [&self.sequence.to_be_bytes()[..], &header].concat(),
        }
    }

    /// `explicit` is the part that TLS 1.2 with GCM sends along.
    fn nonce(&self, explicit: &[u8]) -> Nonce {
        let mut nonce = self.iv;
        if explicit.is_empty() {
            nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()).for_each(|(byte, mask)| *byte ^= mask);
        } else {
            nonce[4..].copy_from_slice(explicit);
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// What a cipher suite is made of.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    aead: &'static Algorithm,
    hash: hmac::Algorithm,
}

impl Suite {
    pub(super) fn of(suite: CipherSuite) -> Self {
        let (aead, hash) = match u16::from(suite) {
            0x1301 | 0xc02b | 0xc02f => (&AES_128_GCM, hmac::HMAC_SHA256),
            0x1302 | 0xc02c | 0xc030 => (&AES_256_GCM, hmac::HMAC_SHA384),
            0x1303 | 0xcca8 | 0xcca9 => (&CHACHA20_POLY1305, hmac::HMAC_SHA256),
            other => panic!("the client offers no suite {other:#06x}"),
        };
        Self { aead, hash }
    }

    fn is_chacha(self) -> bool {
        self.aead == &CHACHA20_POLY1305
    }

    fn key(self, bytes: &[u8]) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(self.aead, bytes).expect("the length is the algorithm's"))
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446, section 7.1), for at most one block of the hash.
    fn expand(self, secret: &[u8], label: &str, length: usize) -> Vec<u8> {
        let label = [b"tls13 ", label.as_bytes()].concat();
        let [high, low] = u16::try_from(length).expect("short").to_be_bytes();
        let label_length = u8::try_from(label.len()).expect("short");
        let info = [&[high, low, label_length][..], &label, &[0, 1]].concat();
        self.mac(secret, &info)[..length].to_vec()
    }

    /// The pseudo-random function of TLS 1.2, its label within `seed` (RFC 5246, section 5).
    fn prf(self, secret: &[u8], seed: &[u8], length: usize) -> Vec<u8> {
        let (mut block, mut output) = (self.mac(secret, seed), Vec::new());
        while output.len() < length {
            output.extend(self.mac(secret, &[&block, seed].concat()));
            block = self.mac(secret, &block);
        }
        output.truncate(length);
        output
    }

    fn mac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.hash, key), data).as_ref().to_vec()
    }
}
