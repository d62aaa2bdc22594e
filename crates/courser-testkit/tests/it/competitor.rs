//! Every rival that is installed does what a benchmark's setting says, seen by the client that loads it.

use courser_testkit::{
    Folder, KeyType, Leaf, OriginServer, TestCa,
    client::{Client, Resume, Version},
    competitor::{Rival, Running, Setting},
    load::{Load, Until, Workload, hold},
    require,
};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

/// One rival with one setting, with all that it needs.
struct Stage {
    rival: Running,
    ca: TestCa,
    setting: Setting,
    _origin: OriginServer,
    _folder: Folder,
}

impl Stage {
    fn set(rival: Rival, version: Version, key: KeyType, resume: Resume) -> Self {
        let (folder, ca, origin) = (Folder::new(), TestCa::new(), OriginServer::http());
        let certificate = ca.issue(&Leaf::new(key)).write_combined(&folder, "site");
        let setting = Setting {
            version,
            key,
            certificate,
            resume,
            backend: origin.address(),
            backlog: 128,
            core: None,
        };
        let rival = rival.start(&setting).expect("an installed rival starts");
        Self { rival, ca, setting, _origin: origin, _folder: folder }
    }

    fn client(&self) -> Client {
        let Setting { version, key, resume, .. } = self.setting;
        Client::verifying(self.rival.address, version, key, resume, self.ca.root())
    }
}

fn installed() -> impl Iterator<Item = Rival> {
    Rival::ALL.into_iter().filter(|rival| rival.program().is_some() || require(rival.name()).is_some())
}

#[test]
fn tls13_is_full_with_the_suite_and_group_of_the_setting() {
    for rival in installed() {
        for key in [KeyType::EcdsaP256, KeyType::Rsa2048] {
            let stage = Stage::set(rival, Version::Tls13, key, Resume::Never);
            let mut connection = stage.client().connect().unwrap();
            connection.get(100_000, true).unwrap();
            let agreed = connection.agreed();
            assert_eq!(agreed.version, Some(ProtocolVersion::TLSv1_3), "{}", rival.name());
            assert_eq!(agreed.suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
            assert_eq!(agreed.group, Some(NamedGroup::X25519));
            assert!(!agreed.resumed);
            assert_eq!(connection.tickets(), 2, "{}", rival.name());
        }
    }
}

#[test]
fn tls12_is_resumed_as_the_setting_says() {
    for rival in installed() {
        for resume in [Resume::Ticket, Resume::SessionId] {
            let stage = Stage::set(rival, Version::Tls12, KeyType::EcdsaP256, resume);
            let client = stage.client();
            let kinds = [(); 3].map(|()| {
                let mut connection = client.connect().unwrap();
                connection.get(1024, true).unwrap();
                connection.is_resumed()
            });
            assert_eq!(kinds, [false, true, true], "{} {resume:?}", rival.name());
        }
    }
}

#[test]
fn load_completes_and_counts() {
    for rival in installed() {
        let stage = Stage::set(rival, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
        for exchange in [Workload::Handshake, Workload::Request(1024)] {
            let load = Load { exchange, resumed: false, concurrency: 4, until: Until::Connections(40) };
            let outcome = load.run(&stage.client()).unwrap();
            assert_eq!(outcome.connections, 40, "{}", rival.name());
        }
        let resumed = Load {
            exchange: Workload::Handshake,
            resumed: true,
            concurrency: 1,
            until: Until::Connections(1),
        };
        assert!(resumed.run(&stage.client()).is_err(), "a full handshake passed for a resumed one");
        assert_eq!(hold(&stage.client(), 10, 4, 1024).unwrap().len(), 10);
    }
}
