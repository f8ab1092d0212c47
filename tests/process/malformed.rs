//! Tests of what clients that do not speak HTTP leave in the log.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::running::{Running, serve};

/// Returns the log of a service to which malformed requests were sent, at the levels that `RUST_LOG` names.
fn log(folder: &Path, levels: &str) -> String {
    let path = folder.join("log");
    let mut command = serve(folder, &[]);
    command.env("RUST_LOG", levels).stderr(File::create(&path).unwrap());
    let mut service = Running::launch(command);
    for request in ["NO HTTP\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
    }
    assert!(service.terminate().success());
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn malformed_requests_are_logged_for_debugging_only() {
    let folder = tempfile::tempdir().unwrap();
    for levels in ["warn", "warn,rolltop=info", "info"] {
        let log = log(folder.path(), levels);
        assert!(!log.contains("ERROR") && !log.contains("stream error"), "{levels}: {log}");
    }
    let log = log(folder.path(), "info,actix_http=debug");
    assert_eq!(log.matches("stream error").count(), 3, "{log}");
}
