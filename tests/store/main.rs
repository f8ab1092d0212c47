//! Tests of the stores: each against the same contract and the same oracle, and each for its own properties.

#[path = "../support/waiting.rs"]
mod waiting;

#[path = "../support/drawn.rs"]
mod drawn;

#[path = "../support/documented_user.rs"]
mod documented_user;

#[path = "../support/skipping.rs"]
mod skipping;

#[path = "../support/redis_server.rs"]
mod redis_server;

#[path = "../support/redis_cluster.rs"]
mod redis_cluster;

mod altered;
mod carrying;
mod contract;
mod given;
mod model;
mod oracle;
mod site;

mod embedded_only;
mod redis_only;

#[test]
fn a_server_starts_and_stops() {
    for engine in redis_server::Engine::available() {
        let mut server = redis_server::RedisServer::start(&engine);
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_ok());
        server.kill();
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err());
        server.restart();
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_ok());
    }
}
