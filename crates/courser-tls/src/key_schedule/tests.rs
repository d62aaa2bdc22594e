use super::*;

/// Suites of the library and, each behind its own, with this module's hashing.
fn suites() -> impl Iterator<Item = [SupportedCipherSuite; 2]> {
    aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| [*suite, with_prepared_hashes(*suite)])
}

fn hash(suite: SupportedCipherSuite) -> &'static dyn hash::Hash {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
        SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
    }
}

fn outputs(expander: &dyn HkdfExpander) -> Vec<Vec<u8>> {
    let infos: [&[&[u8]]; 3] = [&[], &[b"tls13 ", b"derived", &[7; 32]], &[&[9; 300]]];
    let mut outputs = Vec::new();
    for info in infos {
        outputs.push(expander.expand_block(info).as_ref().to_vec());
        for length in [1, 12, 16, 31, 32, 33, 48, 49, 64, 200, 255 * expander.hash_len()] {
            let mut output = vec![0; length];
            expander.expand_slice(info, &mut output).expect("within the limit");
            outputs.push(output);
        }
    }
    outputs
}

#[test]
fn each_suite_stays_itself() {
    for [theirs, ours] in suites() {
        assert_eq!((ours.suite(), ours.version()), (theirs.suite(), theirs.version()));
        assert_eq!(hash(ours).algorithm(), hash(theirs).algorithm());
        assert_eq!(hash(ours).output_len(), hash(theirs).output_len());
    }
}

#[test]
fn every_output_of_hkdf_is_the_librarys() {
    for [theirs, ours] in suites() {
        let (SupportedCipherSuite::Tls13(theirs), SupportedCipherSuite::Tls13(ours)) = (theirs, ours) else {
            continue;
        };
        let (theirs, ours) = (theirs.hkdf_provider, ours.hkdf_provider);
        for salt in [None, Some(&[1; 32][..]), Some(&[1; 48]), Some(&[2; 200])] {
            assert_eq!(
                outputs(&*ours.extract_from_zero_ikm(salt)),
                outputs(&*theirs.extract_from_zero_ikm(salt))
            );
            for secret in [&[3; 32][..], &[3; 48], &[4; 64], &[]] {
                assert_eq!(
                    outputs(&*ours.extract_from_secret(salt, secret)),
                    outputs(&*theirs.extract_from_secret(salt, secret))
                );
            }
        }
        let okm = OkmBlock::new(&[5; 32]);
        assert_eq!(outputs(&*ours.expander_for_okm(&okm)), outputs(&*theirs.expander_for_okm(&okm)));
        assert_eq!(ours.hmac_sign(&okm, b"x").as_ref(), theirs.hmac_sign(&okm, b"x").as_ref());
    }
}

#[test]
fn more_than_255_blocks_are_refused() {
    let mut output = vec![0; 255 * 48 + 1];
    assert!(SHA256.extract_from_zero_ikm(None).expand_slice(&[], &mut output).is_err());
    assert!(SHA384.extract_from_zero_ikm(None).expand_slice(&[], &mut output).is_err());
}

#[test]
fn every_output_of_the_pseudorandom_function_is_the_librarys() {
    for [theirs, ours] in suites() {
        let (SupportedCipherSuite::Tls12(theirs), SupportedCipherSuite::Tls12(ours)) = (theirs, ours) else {
            continue;
        };
        for length in [1, 12, 31, 32, 33, 40, 48, 49, 64, 104, 200] {
            for secret in [&[1; 32][..], &[2; 48], &[3; 66], &[4; 129]] {
                let [mut by_us, mut by_them] = [vec![0; length], vec![0; length]];
                ours.prf_provider.for_secret(&mut by_us, secret, b"key expansion", &[4; 64]);
                theirs.prf_provider.for_secret(&mut by_them, secret, b"key expansion", &[4; 64]);
                assert_eq!(by_us, by_them);
            }
        }
    }
}

#[test]
fn the_transcript_is_the_librarys_at_each_step() {
    for [theirs, ours] in suites() {
        let (theirs, ours) = (hash(theirs), hash(ours));
        let (mut by_us, mut by_them) = (ours.start(), theirs.start());
        for length in [0, 1, 63, 64, 65, 127, 128, 129, 300] {
            let data = vec![7; length];
            assert_eq!(ours.hash(&data).as_ref(), theirs.hash(&data).as_ref());
            by_us.update(&data);
            by_them.update(&data);
            assert_eq!(by_us.fork_finish().as_ref(), by_them.fork_finish().as_ref());
            let (mut fork, mut other) = (by_us.fork(), by_them.fork());
            fork.update(b"x");
            other.update(b"x");
            assert_eq!(fork.finish().as_ref(), other.finish().as_ref());
        }
        assert_eq!(by_us.finish().as_ref(), by_them.finish().as_ref());
    }
}
