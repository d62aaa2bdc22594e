//! Sessions with backends: each server has its own.

use courser_testkit::free_port;

use super::{Site, get, wait_for_port};

/// Four servers of nginx with a ticket key each, all of one name.
#[test]
fn of_four_hundred_connections_to_four_servers_of_one_name_all_but_the_first_are_resumed() {
    let (site, ports) = (Site::new(), [(); 4].map(|()| free_port()));
    let server = |(number, port): (usize, &u16)| {
        let key = site.folder.write(&format!("{number}.key"), vec![u8::try_from(number).unwrap(); 80]);
        let key = key.display();
        format!(
            "server {{ listen 127.0.0.1:{port} ssl; CERT ssl_session_ticket_key {key}; return 200 s_{number}; }}\n"
        )
    };
    let Some(_nginx) = site.nginx(&ports.iter().enumerate().map(server).collect::<String>()) else { return };
    ports.iter().for_each(|port| wait_for_port(*port));
    let servers: Vec<_> = ports.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
    let tls = "{ verify = ['CA'], server_name = 'localhost' }\nbalance = 'round-robin'";
    let courser = site.serve_all(&servers.join(", "), tls, "");
    for number in 0..400 {
        assert!(get(&courser).ends_with(&format!("s_{}", number % 4)));
    }
    let lines = courser.connections_json(400);
    let resumed = lines.iter().filter(|line| line["backend_session"] == "resumed").count();
    assert_eq!(resumed, 396, "of 400");
}
