//! Opening the servers: reads the address and the CA file, and finds the nodes for the first time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::access::Access;
use super::address::{Address, Deployment};
use super::cluster::Extent;
use super::failure::ServerFailure;
use super::map::Map;
use super::node::Node;
use super::watch::{self, Watch};
use super::{Channel, Info, Servers};
use crate::store::{Result, StoreError};

impl Servers {
    /// Reads the address and finds the servers. Nothing is sent to a single server yet.
    pub async fn open(url: &str, ca: Option<&Path>, patience: Duration) -> Result<Arc<Self>> {
        let setup = |detail: String| StoreError::Setup { detail };
        let address: Address =
            url.parse().map_err(|error| setup(format!("the Redis address cannot be read: {error}")))?;
        if ca.is_some() && !address.tls {
            return Err(setup(
                "redis_ca is allowed only with rediss:// addresses; this one does not use TLS".to_owned(),
            ));
        }
        let read = |path: &Path| match std::fs::read(path) {
            Ok(pem) if CertificateDer::pem_slice_iter(&pem).next().is_some_and(|first| first.is_ok()) => Ok(pem),
            Ok(_) => Err(setup(format!("redis_ca: {} contains no certificate in PEM format", path.display()))),
            Err(error) => Err(setup(format!("redis_ca: cannot read {}: {error}", path.display()))),
        };
        let access = Access { ca: ca.map(read).transpose()?, address, patience };
        let servers = Arc::new(Self {
            at: access.address.to_string().into(),
            map: RwLock::new(Arc::new(Map::empty())),
            known: Mutex::default(),
            refreshed: tokio::sync::Mutex::default(),
            signs: Arc::default(),
            watch: Arc::new(Watch::new()),
            access,
        });
        let first = servers.access.address.hosts.first().map(|host| servers.node(host)).transpose();
        let first = first.map_err(|failure| match failure {
            ServerFailure::Other(error) => setup(format!("redis_ca: {error}")),
            failure => servers.error(failure),
        })?;
        let found = match (&servers.access.address.deployment, first) {
            (Deployment::Sentinel { master, login }, _) => match watch::start(&servers, master, login) {
                Ok(()) => servers.watch.first().await,
                Err(failure) => Err(failure),
            },
            (Deployment::Cluster, _) => servers.discover(Extent::First).await,
            (Deployment::Single, node) => {
                if let Some(node) = node {
                    servers.install(Map::of_one(0, node));
                }
                Ok(())
            }
        };
        found.map_err(|failure| servers.wrong_deployment(failure))?;
        Ok(servers)
    }

    /// Returns the error for a refusal of the first request.
    fn wrong_deployment(&self, failure: ServerFailure) -> StoreError {
        let ServerFailure::Other(error) = failure else { return self.error(failure) };
        let what = match self.access.address.deployment {
            Deployment::Single => "a server",
            Deployment::Sentinel { .. } => "Sentinels that know the master",
            Deployment::Cluster => "nodes of a cluster (for a single server write redis://)",
        };
        StoreError::Setup { detail: format!("expected {what} at {}: {error}", self.at) }
    }

    /// Returns whether the servers are the nodes of a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.access.address.deployment, Deployment::Cluster)
    }

    /// Returns whether the master may be replaced at any moment, by Sentinels.
    pub fn has_sentinels(&self) -> bool {
        matches!(self.access.address.deployment, Deployment::Sentinel { .. })
    }

    /// Returns the information of each node about itself. Returns an error for a server whose mode differs from the
    /// address.
    pub async fn identify(&self) -> Result<Vec<(Arc<Node>, Info)>> {
        let mut nodes = Vec::new();
        for node in self.nodes() {
            let answer = node.send(Channel::Calls, &Info::command()).await.map_err(|failure| failure.at(node.at()))?;
            let info = Info::read(answer).unwrap_or_default();
            let instead = match (&self.access.address.deployment, info.mode.as_str()) {
                (Deployment::Single, "cluster") => {
                    Some("is a node of a cluster: write redis+cluster:// (or rediss+cluster://) in its address")
                }
                (_, "sentinel") => Some("is a Sentinel: write redis+sentinel://host,host/master-name"),
                _ => None,
            };
            if let Some(instead) = instead {
                return Err(StoreError::Setup { detail: format!("the server at {} {instead}", node.at()) });
            }
            nodes.push((node, info));
        }
        Ok(nodes)
    }
}
