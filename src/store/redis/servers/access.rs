//! How the servers are reached: their address, and what a connection to one of them needs.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult, TlsCertificates};

use super::address::{Address, Deployment, Host, Login};
use super::node::{Node, Signs};
use super::standing::Mastership;

/// The address and login of the servers.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub address: Address,
    /// The certificates (PEM) to trust in place of the well-known authorities.
    pub ca: Option<Vec<u8>>,
    /// The longest time to wait for the answer of a data server.
    pub patience: Duration,
}

impl Access {
    /// Returns a client for a data server.
    pub fn client(&self, host: &Host) -> RedisResult<Client> {
        self.client_as(host, &self.address.login, self.address.database)
    }

    /// Returns a client for a Sentinel.
    pub fn sentinel(&self, host: &Host, login: &Login) -> RedisResult<Client> {
        self.client_as(host, login, 0)
    }

    fn client_as(&self, host: &Host, login: &Login, database: i64) -> RedisResult<Client> {
        let Host { name, port } = host.clone();
        let address = if self.address.tls {
            ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(name, port)
        };
        let mut settings = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = &login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &login.password {
            settings = settings.set_password(password);
        }
        let info = address.into_connection_info()?.set_redis_settings(settings);
        match &self.ca {
            Some(pem) if self.address.tls => {
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) })
            }
            _ => Client::open(info),
        }
    }

    pub fn node(&self, host: &Host, signs: &Arc<Signs>) -> RedisResult<Node> {
        let standing = matches!(self.address.deployment, Deployment::Sentinel { .. }).then(Mastership::new);
        Ok(Node::new(host.clone(), self.client(host)?, standing, signs.clone(), self.patience))
    }
}
