//! Tests of access to a server: TLS with a private authority, users with few permissions.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::*;
use crate::documented_user;
use crate::redis_cluster::Sentinel;
use crate::redis_server::free_port;

/// Creates a certificate authority, `ca.pem`, and a server certificate that it signs, `server.pem` and `server.key`.
fn make_certificates(folder: &Path) {
    let (authority_key, server_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = authority.self_signed(&authority_key).unwrap();
    let server = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
    let server = server.signed_by(&server_key, &authority, &authority_key).unwrap();
    for (name, text) in
        [("ca.pem", authority.pem()), ("server.pem", server.pem()), ("server.key", server_key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[tokio::test]
async fn every_call_works_over_tls_with_the_documented_permissions() {
    let folder = tempfile::tempdir().unwrap();
    make_certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let mut spoken = 0;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let rules: Vec<&str> = documented_user::rules()
            .into_iter()
            .map(|rule| if rule == ">password" { ">pa/ss:w@rd" } else { rule })
            .collect();
        documented_user::create(&server, &rules);
        let user = format!("redis://app:pa%2Fss:w@rd@{}", server.address());
        let store = RedisStore::connect(options(user, ClockMode::Simulated(t(START)))).await.unwrap();
        let flush = || behind::<()>(&server, &["SCRIPT", "FLUSH"]);
        super::calls::every_call_works(&store, flush, || keys(&server, "*")).await;

        let port = free_port().to_string();
        let paths = [file("server.pem"), file("server.key"), file("ca.pem")];
        let [certificate, key, authority] = paths.each_ref().map(|path| path.to_str().unwrap());
        let words = [
            ["tls-cert-file", certificate],
            ["tls-key-file", key],
            ["tls-ca-cert-file", authority],
            ["tls-auth-clients", "no"],
            ["tls-port", &port],
        ]
        .concat();
        if server.ask::<()>(&[&["CONFIG", "SET"], &words[..]].concat()).is_err() {
            println!("{} was built without TLS", engine.name);
            continue;
        }
        spoken += 1;
        for (host, ca, says) in [
            ("127.0.0.1", Some("ca.pem"), "connected"),
            ("localhost", Some("ca.pem"), "connected"),
            ("127.0.0.1", None, "certificate"),
            ("127.0.0.1", Some("nothing.pem"), "nothing.pem"),
            ("127.0.0.1", Some("server.key"), "contains no certificate"),
        ] {
            let url = format!("rediss://app:pa%2Fss:w@rd@{host}:{port}");
            let options = RedisOptions { ca: ca.map(&file), ..options(url, ClockMode::Simulated(t(START))) };
            let said = match RedisStore::connect(options).await {
                Ok(store) => store.check().await.map(|()| "connected".to_owned()).unwrap(),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(said.to_lowercase().contains(says), "{host} {ca:?}: {said}");
        }
        let options = RedisOptions { ca: Some(file("ca.pem")), ..options(server.url(), ClockMode::System) };
        let refused = RedisStore::connect(options).await.err().unwrap();
        assert!(refused.to_string().contains("rediss://"), "{refused}");
    }
    assert!(spoken > 0, "no server here speaks TLS");
}

/// Returns the rules without one of them.
fn without<'r>(rules: &[&'r str], one: &str) -> Vec<&'r str> {
    assert!(rules.contains(&one), "{one} is not documented");
    rules.iter().copied().filter(|rule| *rule != one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_users_suffice_behind_sentinels_and_role_is_needed() {
    for engine in Engine::available() {
        let sentinel = tokio::task::block_in_place(|| Sentinel::start(&engine, 3_000));
        let rules = documented_user::rules();
        let allow = |rules: &[&str]| sentinel.servers.iter().for_each(|server| documented_user::create(server, rules));
        for one in &sentinel.sentinels {
            documented_user::create(one, &documented_user::rules_on_sentinels());
        }
        let url = documented_user::url(&sentinel.url()) + "?sentinel_user=app&sentinel_password=password";
        allow(&rules);
        let store = RedisStore::connect(options(url.clone(), ClockMode::System)).await.unwrap();
        let board = hourly(&store, "hot").await;
        assert_eq!(add(&store, &board, [item("a", 1)]).await.outcomes, [counted(1)]);
        drop(store);
        allow(&without(&rules, "+role"));
        let refused = RedisStore::connect(options(url, ClockMode::System)).await.err().unwrap();
        let said = refused.to_string().to_lowercase();
        assert!(said.contains("noperm") || said.contains("no permission"), "{refused}");
    }
}
