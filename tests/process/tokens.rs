//! Tests of tokens with the program itself: the commands, signing keys of the configuration, key sets that change.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::access::{hash, run};
use crate::running::{Running, program};
use crate::signing::{SECRET, Signing};
use crate::waiting::Wait;

const KID: &str = "00000000000000a1";

/// Runs `rolltop token` with these arguments. Returns whether it succeeded, and what it printed.
fn token(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let output = program(folder).arg("token").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Sends the item of a token. Returns the status and the response.
async fn send(service: &Running, token: &str) -> (u16, Value) {
    let url = format!("{}/v1/boards/likes/increments", service.base);
    let answer = service.client.post(url).bearer_auth(token).json(&json!({})).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn define(service: &Running, key: &str) {
    let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"});
    let url = format!("{}/v1/boards/likes", service.base);
    let answer = service.client.put(url).bearer_auth(key).json(&definition).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
}

const ONCE: &str = r#"{"scopes":["write"],"increment":{"subject":"p1"},"once":true}"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_make_keys_and_tokens_that_a_service_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = hash(folder, &[]);
    std::fs::write(folder.join("rolltop.toml"), &first.table).unwrap();
    let service = Running::start(folder, &["--config", "rolltop.toml"]);
    define(&service, &first.key).await;
    std::fs::write(folder.join("p256.pem"), Signing::p256().pem).unwrap();
    std::fs::write(folder.join("rsa.pem"), Signing::rsa().pem).unwrap();
    for (file, args) in [("new.pem", &["--new"][..]), ("p256.pem", &[]), ("rsa.pem", &[])] {
        let (done, jwk, said) = token(folder, &[&["key", file], args].concat());
        assert!(done, "{said}");
        std::fs::write(folder.join("public.json"), &jwk).unwrap();
        let create = ["keys", "create", "--name", "likes", "--scopes", "write", "--boards", "likes"];
        let create = [&create[..], &["--public-key", "public.json"]].concat();
        let (done, kid, said) = run(&service, folder, &first.key, &create);
        assert!(done && kid.len() == 16, "{kid} {said}");
        let (done, signed, said) = token(folder, &["sign", "--private-key", file, "--kid", &kid, ONCE]);
        assert!(done, "{said}");
        assert_eq!(send(&service, &signed).await.1["accepted"], 1, "{file}");
        assert_eq!(send(&service, &signed).await.1["duplicates"], 1, "{file}");
        let (done, shown, said) = token(folder, &["inspect", &signed, "--public-key", "public.json"]);
        assert!(done && shown.contains(&kid) && shown.contains("valid until"), "{shown} {said}");
        assert!(run(&service, folder, &first.key, &["keys", "revoke", &kid]).0);
        assert_eq!(send(&service, &signed).await.0, 401);
    }
    // Other libraries read the key, which is PKCS #8 of version 1: 48 bytes, of which the last 32 are the key.
    let pem = std::fs::read_to_string(folder.join("new.pem")).unwrap();
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
    assert_eq!((der.len(), &der[..5]), (48, &[0x30, 0x2e, 0x02, 0x01, 0x00][..]));
    assert!(jsonwebtoken::EncodingKey::from_ed_pem(pem.as_bytes()).is_ok());
    // A key is not overwritten, and is for its owner only.
    assert!(!token(folder, &["key", "new.pem", "--new"]).0);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(folder.join("new.pem")).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    // What a service would refuse is not signed.
    for (claim, says) in [
        (r#"{"scopes":["write"]}"#, "'event' or 'increment'"),
        (r#"{"scopes":["admin"]}"#, "'scopes'"),
        ("nonsense", "not valid JSON"),
    ] {
        let (done, _, said) = token(folder, &["sign", "--private-key", "new.pem", "--kid", KID, claim]);
        assert!(!done && said.contains(says), "{said}");
    }
    let (done, _, said) = token(folder, &["inspect", "a.b.c"]);
    assert!(!done && said.contains("JWT"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_sets_and_secrets_of_the_configuration_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = hash(folder, &[]);
    let (one, two) = (Signing::ed25519(), Signing::p256());
    let set = |keys: &[(&str, &Signing)]| {
        let keys: Vec<Value> = keys
            .iter()
            .map(|(kid, signing)| {
                let mut jwk = signing.public.clone();
                jwk["kid"] = json!(kid);
                jwk
            })
            .collect();
        json!({"keys": keys}).to_string()
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let signing = |more: &str| {
        format!("[[keys]]\nid = \"{KID}\"\nname = \"likes\"\nkind = \"signing\"\nscopes = [\"write\"]\n{more}\n")
    };
    write("rolltop.toml", &format!("{}\n{}", first.table, signing("jwks = \"jwks.json\"")));
    let missing = program(folder).args(["check", "--config", "rolltop.toml"]).output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success() && said.contains("jwks.json"), "{said}");
    write("jwks.json", &set(&[("one", &one)]));
    let service = Running::start(folder, &["--config", "rolltop.toml"]);
    define(&service, &first.key).await;
    let once: Value = serde_json::from_str(ONCE).unwrap();
    let until = async |signing: &Signing, kid: &str, expected: u16| {
        let wait = Wait::begin("a change of the key set");
        loop {
            let (status, answer) = send(&service, &signing.token(kid, &once)).await;
            if status == expected {
                return;
            }
            wait.rest((status, answer)).await;
        }
    };
    until(&one, "one", 200).await;
    assert_eq!(send(&service, &two.token("two", &once)).await.0, 401);
    write("jwks.json", &set(&[("one", &one), ("two", &two)]));
    until(&two, "two", 200).await;
    // A set that is not valid changes nothing, and what follows is taken over.
    write("jwks.json", "{\"keys\": [");
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert_eq!(send(&service, &one.token("one", &once)).await.0, 200);
    write("jwks.json", &set(&[("two", &two)]));
    until(&one, "one", 401).await;
    assert_eq!(send(&service, &two.token("two", &once)).await.0, 200);
    // The key gets a secret in place of the key set.
    let secret = signing(&format!("secret = \"{SECRET}\""));
    write("rolltop.toml", &format!("{}\n{secret}", first.table));
    until(&Signing::hs256(), KID, 200).await;
    assert_eq!(send(&service, &two.token("two", &once)).await.0, 401);
    let listed = run(&service, folder, &first.key, &["keys", "list"]);
    let log = service.log().join("\n");
    assert!(listed.1.contains(KID) && ![&listed.1, &log].iter().any(|text| text.contains(SECRET)), "{log}");
}
