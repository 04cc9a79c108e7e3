//! The `store` setting: the address of the database. `conf/gateway.toml`.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

/// Default port of Postgres.
const POSTGRES_PORT: u16 = 5432;

/// The address of the database. `Display` omits user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// `sqlite:PATH`, relative to the working directory.
    Sqlite(PathBuf),
    /// `postgres://…`, a server that several machines can share.
    Postgres(PostgresAddress),
}

/// A Postgres server and database, in libpq's URL format. `Debug` and `Display` omit the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Box<Config>,
    verifies_server: bool,
}

impl StoreAddress {
    /// The file, if the database is SQLite.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }

    /// Whether the address itself has a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        matches!(self, Self::Postgres(address) if address.config.get_password().is_some())
    }

    /// Adds a password that is configured separately. SQLite ignores it.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        if let Self::Postgres(address) = &mut self {
            address.config.password(password);
        }
        self
    }

    /// A warning for the operator, if the server is on another machine and its certificate is not verified.
    #[must_use]
    pub fn weakness(&self) -> Option<&'static str> {
        match self {
            Self::Postgres(address) if is_remote(&address.config) && !address.verifies_server => {
                Some(
                    "store: the server is on another machine, and sslmode is weaker than verify-full: an attacker \
                     on the network can read everything, or impersonate the server",
                )
            }
            Self::Postgres(_) | Self::Sqlite(_) => None,
        }
    }
}

impl PostgresAddress {
    /// Creates an address from a driver configuration.
    #[cfg(test)]
    pub(crate) fn from_config(config: Config) -> Self {
        Self {
            config: Box::new(config),
            verifies_server: false,
        }
    }

    /// The driver's configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the server's certificate is verified, with its host name: `sslmode=verify-full`, the default for
    /// a server on another machine.
    pub(crate) fn verifies_server(&self) -> bool {
        self.verifies_server
    }

    fn parse(address: &str) -> Result<Self, ParseStoreAddressError> {
        let (server, query) = address.split_once('?').unwrap_or((address, ""));
        let mut mode = None;
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", word)) => mode = Some(word),
                Some(("sslrootcert", _)) => return Err(ParseStoreAddressError::RootCertificate),
                _ => others.push(pair),
            }
        }
        let mut config: Config = format!("{server}?{}", others.join("&"))
            .parse()
            .map_err(|_| ParseStoreAddressError::Postgres)?;
        if config.get_hosts().is_empty() || config.get_dbname().is_none() {
            return Err(ParseStoreAddressError::Postgres);
        }
        let default_mode = match is_remote(&config) {
            true => "verify-full",
            false => "prefer",
        };
        let (mode, verifies_server) = match mode.unwrap_or(default_mode) {
            "prefer" => (SslMode::Prefer, false),
            "disable" => (SslMode::Disable, false),
            "require" => (SslMode::Require, false),
            "verify-full" => (SslMode::Require, true),
            _ => return Err(ParseStoreAddressError::SslMode),
        };
        config.ssl_mode(mode);
        Ok(Self {
            config: Box::new(config),
            verifies_server,
        })
    }
}

/// Whether any of the servers is neither on loopback nor on a Unix socket.
fn is_remote(config: &Config) -> bool {
    let is_remote = |address: &IpAddr| !address.is_loopback();
    // If `hostaddr` is set, host names are only used to verify certificates.
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().any(is_remote);
    }
    config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => {
            let address = name.parse();
            name != "localhost" && address.map_or(true, |address| is_remote(&address))
        }
        Host::Unix(_) => false,
    })
}

impl FromStr for StoreAddress {
    type Err = ParseStoreAddressError;

    fn from_str(address: &str) -> Result<Self, Self::Err> {
        match address.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                PostgresAddress::parse(address).map(Self::Postgres)
            }
            _ => Err(ParseStoreAddressError::Kind),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(address) => write!(formatter, "{address}"),
        }
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or(ports.first());
            let comma = if index > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) => write!(formatter, "{comma}{name}")?,
                Host::Unix(path) => write!(formatter, "{comma}{}", path.display())?,
            }
            write!(formatter, ":{}", port.copied().unwrap_or(POSTGRES_PORT))?;
        }
        write!(
            formatter,
            "/{}",
            self.config.get_dbname().unwrap_or_default()
        )
    }
}

/// Why an address is invalid. Never contains the address, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseStoreAddressError {
    /// The kind of address is unknown.
    #[error(
        "\"sqlite:PATH\", for example \"sqlite:data/signpost.db\", or \"postgres://USER@HOST:PORT/DATABASE\""
    )]
    Kind,
    /// A `postgres` address is not in libpq's format, or has no host or no database.
    #[error(
        "\"postgres://USER@HOST:PORT/DATABASE\", with libpq's parameters after a \"?\" and special characters \
         percent-encoded"
    )]
    Postgres,
    /// The address has `sslrootcert`, which is configured separately.
    #[error("an address without sslrootcert: set root_certificate in [postgres] instead")]
    RootCertificate,
    /// The `sslmode` is not supported.
    #[error(
        "sslmode=disable, prefer, require or verify-full (the default for a server on another machine)"
    )]
    SslMode,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Result<StoreAddress, ParseStoreAddressError> {
        address.parse()
    }

    #[test]
    fn an_address_names_a_file() {
        let address = parse("sqlite:data/signpost.db").unwrap();
        assert_eq!(address.file(), Some(Path::new("data/signpost.db")));
        assert_eq!(address.to_string(), "sqlite:data/signpost.db");
        for bad in ["", "sqlite:", "data/signpost.db", "mysql://x", "postgres:x"] {
            assert_eq!(parse(bad), Err(ParseStoreAddressError::Kind), "{bad}");
        }
    }

    #[test]
    fn an_address_names_a_server_and_its_password_is_not_printed() {
        for address in [
            "postgres://u:hush@db.example:6432/signpost",
            "postgresql://u:hush@db.example:6432/signpost?sslmode=verify-full&connect_timeout=3",
        ] {
            let address = parse(address).unwrap();
            assert_eq!(address.to_string(), "postgres://db.example:6432/signpost");
            assert!(!format!("{address:?}").contains("hush"));
        }
        let two = parse("postgres://u@one,two:7/signpost?target_session_attrs=read-write").unwrap();
        assert_eq!(two.to_string(), "postgres://one:5432,two:7/signpost");
    }

    #[test]
    fn an_invalid_server_address_is_reported_without_repeating_it() {
        for (bad, error) in [
            (
                "postgres://u:hush@h/d?sslmode=allow",
                ParseStoreAddressError::SslMode,
            ),
            (
                "postgres://u:hush@h/d?sslrootcert=f",
                ParseStoreAddressError::RootCertificate,
            ),
            (
                "postgres://u:hush@h/d?nonsense=1",
                ParseStoreAddressError::Postgres,
            ),
            (
                "postgres://u:hush@h:port/d",
                ParseStoreAddressError::Postgres,
            ),
            ("postgres://u:hush@h", ParseStoreAddressError::Postgres),
            ("postgres:///d", ParseStoreAddressError::Postgres),
        ] {
            assert_eq!(parse(bad), Err(error), "{bad}");
            assert!(!error.to_string().contains("hush"));
        }
    }

    #[test]
    fn sslmode_sets_encryption_and_verification() {
        for (mode, expected, verifies, is_weak) in [
            ("", SslMode::Require, true, false),
            ("?sslmode=disable", SslMode::Disable, false, true),
            ("?sslmode=prefer", SslMode::Prefer, false, true),
            ("?sslmode=require", SslMode::Require, false, true),
            ("?sslmode=verify-full", SslMode::Require, true, false),
        ] {
            let address = parse(&format!("postgres://u@db.example/d{mode}")).unwrap();
            assert_eq!(address.weakness().is_some(), is_weak, "{mode}");
            let StoreAddress::Postgres(server) = address else {
                panic!("a server")
            };
            assert_eq!(server.config().get_ssl_mode(), expected, "{mode}");
            assert_eq!(server.verifies_server(), verifies, "{mode}");
        }
        let remote = parse("postgres://u@localhost/d?hostaddr=10.0.0.1&sslmode=prefer").unwrap();
        assert!(remote.weakness().is_some());
    }

    #[test]
    fn a_server_on_another_machine_is_verified_unless_the_address_says_otherwise() {
        for (hosts, verifies, mode) in [
            ("db.example/d", true, SslMode::Require),
            ("10.0.0.1/d", true, SslMode::Require),
            ("localhost,db.example/d", true, SslMode::Require),
            ("localhost/d?hostaddr=10.0.0.1", true, SslMode::Require),
            ("localhost/d", false, SslMode::Prefer),
            ("127.0.0.1/d", false, SslMode::Prefer),
            ("127.9.9.9/d", false, SslMode::Prefer),
            ("[::1]/d", false, SslMode::Prefer),
            ("%2Frun%2Fpostgresql/d", false, SslMode::Prefer),
            ("db.example/d?hostaddr=127.0.0.1", false, SslMode::Prefer),
        ] {
            let address = parse(&format!("postgres://u@{hosts}")).unwrap();
            assert_eq!(address.weakness(), None, "{hosts}");
            let StoreAddress::Postgres(server) = address else {
                panic!("a server")
            };
            assert_eq!(server.verifies_server(), verifies, "{hosts}");
            assert_eq!(server.config().get_ssl_mode(), mode, "{hosts}");
        }
    }
}
