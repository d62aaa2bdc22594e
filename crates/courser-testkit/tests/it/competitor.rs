//! Every competitor that is installed does what a benchmark's setting requires, seen by the client that loads it.

use courser_testkit::{
    Folder, KeyType, Leaf, OriginServer, TestCa,
    client::{Client, Profile, Resume, Terms, Version},
    competitor::{Competitor, Running, Setting},
    load::{Load, Until, Workload, hold},
    require,
};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

/// One competitor with one setting, with all that it needs.
struct Stage {
    competitor: Running,
    ca: TestCa,
    setting: Setting,
    _origin: OriginServer,
    _folder: Folder,
}

impl Stage {
    fn set(competitor: Competitor, version: Version, key: KeyType, resume: Resume) -> Self {
        Self::with(competitor, Terms { version, key, resume, profile: Profile::Common })
    }

    fn with(competitor: Competitor, terms: Terms) -> Self {
        let (folder, ca, origin) = (Folder::new(), TestCa::new(), OriginServer::http());
        let certificate = ca.issue(&Leaf::new(terms.key)).write_combined(&folder, "site");
        let setting = Setting { terms, certificate, backend: origin.address(), backlog: 128, core: None };
        let competitor = competitor.start(&setting).expect("an installed competitor starts");
        Self { competitor, ca, setting, _origin: origin, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::verifying(self.competitor.address, self.setting.terms, self.ca.root())
    }
}

fn installed() -> impl Iterator<Item = Competitor> {
    Competitor::ALL
        .into_iter()
        .filter(|competitor| competitor.program().is_some() || require(competitor.name()).is_some())
}

#[test]
fn tls13_is_full_with_the_suite_and_group_of_the_setting() {
    for competitor in installed() {
        for key in [KeyType::EcdsaP256, KeyType::Rsa2048] {
            let stage = Stage::set(competitor, Version::Tls13, key, Resume::Never);
            let mut connection = stage.client().connect().unwrap();
            connection.get(100_000, true).unwrap();
            let info = connection.handshake_info();
            assert_eq!(info.version, Some(ProtocolVersion::TLSv1_3), "{}", competitor.name());
            assert_eq!(info.suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
            assert_eq!(info.group, Some(NamedGroup::X25519));
            assert!(!info.resumed);
            assert_eq!(connection.tickets(), 2, "{}", competitor.name());
        }
    }
}

#[test]
fn tls13_has_the_other_suite_of_the_setting() {
    for competitor in installed() {
        let (version, key) = (Version::Tls13, KeyType::EcdsaP256);
        let stage =
            Stage::with(competitor, Terms { version, key, resume: Resume::Never, profile: Profile::Sha384 });
        let info = stage.client().connect().unwrap().handshake_info();
        assert_eq!(info.suite, Some(CipherSuite::TLS13_AES_256_GCM_SHA384), "{}", competitor.name());
    }
}

#[test]
fn tls12_is_resumed_as_the_setting_says() {
    for competitor in installed() {
        for resume in [Resume::Ticket, Resume::SessionId] {
            let stage = Stage::set(competitor, Version::Tls12, KeyType::EcdsaP256, resume);
            let client = stage.client();
            let kinds = [(); 3].map(|()| {
                let mut connection = client.connect().unwrap();
                connection.get(1024, true).unwrap();
                connection.is_resumed()
            });
            assert_eq!(kinds, [false, true, true], "{} {resume:?}", competitor.name());
        }
    }
}

#[test]
fn load_completes_and_counts() {
    for competitor in installed() {
        let stage = Stage::set(competitor, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
        for exchange in [Workload::Handshake, Workload::Request(1024)] {
            let load =
                Load { workload: exchange, resumed: false, concurrency: 4, until: Until::Connections(40) };
            let outcome = load.run(&stage.client()).unwrap();
            assert_eq!(outcome.connections, 40, "{}", competitor.name());
        }
        let resumed = Load {
            workload: Workload::Handshake,
            resumed: true,
            concurrency: 1,
            until: Until::Connections(1),
        };
        assert!(resumed.run(&stage.client()).is_err(), "a full handshake passed for a resumed one");
        assert_eq!(hold(&stage.client(), 10, 4, 1024).unwrap().len(), 10);
    }
}
