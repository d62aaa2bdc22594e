//! A relay in front of a terminator, both courser: the client's address goes from end to end.

use courser_testkit::{Behaviour, OriginServer, require};

use super::curl;
use crate::proxy_header::parse;
use crate::stage::{Stage, courser, eventually};
use crate::support::line;

#[test]
fn the_clients_address_goes_through_a_chain_over_tcp_unix_and_abstract_sockets() {
    if require("curl").is_none() {
        return;
    }
    let name = format!("courser-test-chain-{}", std::process::id());
    for kind in ["127.0.0.1:0", "unix:behind.sock", &format!("abstract:{name}")] {
        let (stage, origin) = (Stage::new(), OriginServer::setup(Behaviour::Http).proxy().start());
        let behind = format!(
            "log = 'json'\n[[listener]]\nlisten = '{kind}'\ncert = '{}'\nproxy_protocol = {{ from = ['127.0.0.1', 'unix'] }}\n\
             backend = '{}'\nsend_proxy = 'v2'\n",
            stage.certificate.display(),
            origin.backend()
        );
        let behind = courser().config(&stage.folder.write("behind.toml", behind)).start();
        let front = format!(
            "log = 'json'\n[pool.behind]\nservers = '{}'\n[[listener]]\nlisten = '127.0.0.1:0'\nsend_proxy = 'v2'\n\
             route = {{ relay = 'behind' }}\n",
            behind.addresses()[0]
        );
        let front = courser().config(&stage.folder.write("front.toml", front)).start();
        eventually("both listen", || !front.addresses().is_empty());
        let client = curl(&stage.root, front.address(), &[]);
        let (first, second) = (line(&front, 1), line(&behind, 1));
        assert_eq!((&first["client"], &second["client"]), (&client.clone().into(), &client.clone().into()));
        let via = second["via"].as_str().unwrap();
        assert_eq!(via == "unix", kind != "127.0.0.1:0", "{second}");
        assert_eq!(
            (first["tls_mode"].as_str(), second["tls_mode"].as_str()),
            (Some("passthrough"), Some("terminate"))
        );
        let Some(parsed) = parse(&stage.folder, &origin.headers()[0]) else { return };
        assert_eq!((&parsed["source"], &parsed["unique_id"]), (&client.into(), &second["id"]));
        assert_eq!(parsed["destination"], front.address().to_string());
    }
}
