//! A connection to one server or to a Cluster, on which commands are sent in the same way.

use ::redis::aio::{ConnectionLike, ConnectionManager};
use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo};
use ::redis::{Cmd, Pipeline, RedisFuture, Value};

/// A connection, which is cheap to clone.
#[derive(Clone)]
pub(super) enum Connection {
    /// To one server, and to it again when it breaks.
    One(ConnectionManager),
    /// To a Cluster: a command goes to the primary of its key.
    Cluster(ClusterConnection),
    /// To a Cluster: every command goes to this primary first.
    Node(ClusterConnection, Route),
}

impl Connection {
    /// Returns the connection on which commands go to the primary of this route, if there are several ones.
    pub(super) fn to(self, route: Route) -> Self {
        match self {
            Self::One(_) => self,
            Self::Cluster(connection) | Self::Node(connection, _) => Self::Node(connection, route),
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
            Self::Node(connection, route) => {
                let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(*route));
                Box::pin(connection.route_command(command.clone(), route))
            }
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(commands, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
            Self::Node(connection, route) => {
                let route = SingleNodeRoutingInfo::SpecificNode(*route);
                Box::pin(connection.route_pipeline(commands.clone(), offset, count, route))
            }
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(connection) => connection.get_db(),
            Self::Cluster(_) | Self::Node(..) => 0,
        }
    }
}
