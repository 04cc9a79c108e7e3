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

/// What may stand behind the `?` of a Postgres address, beside `sslmode`.
const PARAMETERS: &str = "application_name, channel_binding, connect_timeout, dbname, host, hostaddr, keepalives, \
    keepalives_idle, keepalives_interval, keepalives_retries, load_balance_hosts, options, password, port, sslmode, \
    sslnegotiation, target_session_attrs, tcp_user_timeout, user";

/// The address of the database. `Display` and `Debug` omit user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// `sqlite:PATH`, relative to the working directory.
    Sqlite(PathBuf),
    /// `postgres://…`, a server that several machines can share.
    Postgres(PostgresAddress),
}

/// A Postgres server and database, in libpq's URL format. `Display` and `Debug` show hosts, ports and the database's name
/// only.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Box<Config>,
    verifies_server: bool,
}

impl StoreAddress {
    /// The user that it names, if the database is Postgres.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(server) => server.config.get_user(),
        }
    }

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

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the server's certificate is verified, with its host name: `sslmode=verify-full`, the default for
    /// a server on another machine.
    pub(crate) fn verifies_server(&self) -> bool {
        self.verifies_server
    }

    /// Parses what follows the scheme and `//`.
    fn parse(address: &str) -> Result<Self, ParseStoreAddressError> {
        // libpq ends user and password at the first "@", other programs at the last, and none must be shown as a host.
        let login = address.rsplit_once('@').map_or("", |(login, _)| login);
        let has_query = login.contains('?') && login.contains('=');
        let front = login.split_once('/').map(|(front, _)| front);
        if login.contains('@') || has_query || front.is_some_and(|front| !front.contains(':')) {
            return Err(ParseStoreAddressError::Login);
        }
        let (login, server) = address.split_at(login.len());
        let (server, query) = server.split_once('?').unwrap_or((server, ""));
        let (mut mode, mut others) = (None, vec![]);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                // Not passed on: the driver does not know `verify-full`.
                Some(("sslmode", word)) => mode = Some(word),
                Some(("sslrootcert", _)) => return Err(ParseStoreAddressError::RootCertificate),
                // Each alone, so that the message can name the parameter that is wrong.
                _ if format!("postgres://?{pair}").parse::<Config>().is_err() => {
                    // What follows a password may be the rest of one with a "&".
                    let name = pair.split_once('=').filter(|_| !query.contains("password"));
                    let name = name.map_or("parameter", |(name, _)| name);
                    return Err(ParseStoreAddressError::Parameter(name.to_owned()));
                }
                _ => others.push(pair),
            }
        }
        let mut config: Config = format!("postgres://{login}{server}?{}", others.join("&"))
            .parse()
            .map_err(|_| ParseStoreAddressError::Postgres)?;
        let hosts = config.get_hosts();
        if hosts.is_empty() || !hosts.iter().all(is_host) || config.get_dbname().is_none() {
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
            // The driver only requires TLS; `connect::tls` verifies the certificate.
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

/// Whether it is the name or address of a host: nothing else is shown, and no resolver is asked for it.
fn is_host(host: &Host) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    !matches!(host, Host::Tcp(name) if name.is_empty() || !name.chars().all(is_part))
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
            // Any other name may be another machine: nothing is resolved here.
            name != "localhost" && address.map_or(true, |address| is_remote(&address))
        }
        Host::Unix(_) => false,
    })
}

impl FromStr for StoreAddress {
    type Err = ParseStoreAddressError;

    fn from_str(address: &str) -> Result<Self, Self::Err> {
        match address.split_once(':') {
            Some(("sqlite", path)) if is_plain(path) => Ok(Self::Sqlite(path.into())),
            Some(("sqlite", _)) => Err(ParseStoreAddressError::Sqlite),
            Some(("postgres" | "postgresql", rest)) => {
                let rest = rest
                    .strip_prefix("//")
                    .ok_or(ParseStoreAddressError::Postgres)?;
                PostgresAddress::parse(rest).map(Self::Postgres)
            }
            _ => Err(ParseStoreAddressError::Kind),
        }
    }
}

/// Whether other programs, too, read what follows `sqlite:` as the path of a file.
fn is_plain(path: &str) -> bool {
    let is_special = ["//", ":", "~", "file:"].map(|start| path.starts_with(start));
    let is_special = is_special.contains(&true) || path.contains(['?', '%']) || path.ends_with('/');
    !path.is_empty() && path.trim() == path && !is_special
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(address) => write!(formatter, "{address}"),
        }
    }
}

// The driver's would print the user.
signpost_protocol::hide_in_debug!(PostgresAddress);

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or(ports.first());
            let comma = if index > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) if name.contains(':') => write!(formatter, "{comma}[{name}]")?,
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

/// Why an address is invalid. `Display` says what is allowed. Never contains the address, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseStoreAddressError {
    /// The kind of address is unknown.
    #[error(
        "\"sqlite:PATH\", for example \"sqlite:data/signpost.db\", or \"postgres://USER@HOST:PORT/DATABASE\""
    )]
    Kind,
    /// A `sqlite` address has no path, or one that other programs read in another way.
    #[error(
        "\"sqlite:PATH\" with the plain path of a file: nothing like \"//\", \"~\" or \"file:\" before it, no \"?\" or \"%\" in it"
    )]
    Sqlite,
    /// A `postgres` address is not in libpq's format, or has no host or no database.
    #[error(
        "\"postgres://USER@HOST:PORT/DATABASE\", with libpq's parameters after a \"?\" and special characters \
         percent-encoded"
    )]
    Postgres,
    /// Where user and password of a `postgres` address end is in doubt.
    #[error(
        "one \"@\", behind user and password. Elsewhere write %40 for \"@\", in a password also %2F for \"/\", %3F for \"?\" \
         and %25 for \"%\"; or give the password separately"
    )]
    Login,
    /// A parameter of a `postgres` address, by its name, is unknown or has an invalid value.
    #[error("behind the \"?\", as NAME=VALUE with \"&\" between them: {PARAMETERS}")]
    Parameter(String),
    /// The address has `sslrootcert`, which is configured separately.
    #[error("an address without sslrootcert: set root_certificate in [postgres] instead")]
    RootCertificate,
    /// The `sslmode` is not supported.
    #[error(
        "sslmode=disable, prefer, require or verify-full (the default for a server on another machine)"
    )]
    SslMode,
}

impl ParseStoreAddressError {
    /// What messages show of the address.
    #[must_use]
    pub fn found(&self) -> String {
        let text = match self {
            Self::Kind => "an address of another kind",
            Self::Sqlite => "\"sqlite:\" without a path, or with one that is ambiguous",
            Self::Parameter(name) => {
                return format!("an unknown or invalid {name:?} in the address");
            }
            _ => "an invalid postgres address",
        };
        text.to_owned()
    }
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
        let absolute = parse("sqlite:/data/signpost#1.db").unwrap();
        assert_eq!(absolute.file(), Some(Path::new("/data/signpost#1.db")));
        for bad in [
            "",
            "data/signpost.db",
            "mysql://x",
            "sqlite3:x",
            "SQLite:x",
            "host=x dbname=d password=hush:hush",
        ] {
            assert_eq!(parse(bad), Err(ParseStoreAddressError::Kind), "{bad}");
        }
        assert_eq!(parse("sqlite:"), Err(ParseStoreAddressError::Sqlite));
        assert_eq!(parse("postgres:x"), Err(ParseStoreAddressError::Postgres));
    }

    #[test]
    fn a_path_that_other_programs_read_differently_is_refused() {
        for path in [
            "//data/x.db",
            "///data/x.db",
            "////data/x.db",
            "//./x.db",
            "//u:hush@host/x.db",
            "x.db?mode=ro",
            "x.db?key=hush",
            "my%20data/x.db",
            ":memory:",
            "file:x.db",
            "~/x.db",
            "data/",
            " x.db",
            "x.db\n",
        ] {
            let error = parse(&format!("sqlite:{path}")).unwrap_err();
            assert_eq!(error, ParseStoreAddressError::Sqlite, "{path}");
            let text = format!("{} {error}", error.found());
            assert!(
                text.contains("\"sqlite:PATH\"") && !text.contains("hush"),
                "{text}"
            );
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

    /// Whatever is wrong: "hush" stands where a password is, or its rest.
    #[test]
    fn no_piece_of_a_password_is_shown_or_taken_for_a_host() {
        let login = ParseStoreAddressError::Login;
        for (address, expected) in [
            ("postgres://u:P@hush@h/d", Err(login.clone())),
            ("postgresql://u:P@hush@h:1/d", Err(login.clone())),
            ("postgres://u:P@hush/hush@h/d", Err(login.clone())),
            ("postgres://u:P@hu?sh@h/d", Err(login.clone())),
            ("postgres://u:P@hush#hush@[::1]:7/d", Err(login.clone())),
            ("postgres://u:hush@h/d@x", Err(login.clone())),
            ("postgres://u:hush@h,u:hush@g/d", Err(login.clone())),
            ("postgres://u@h/d?password=P@hush/hush", Err(login.clone())),
            ("postgres://h/d?password=P@hush/hush", Err(login.clone())),
            (
                "postgres://h:5432/d?user=u&password=P@hush/d",
                Err(login.clone()),
            ),
            ("postgres://h/d@hush/hush", Err(login)),
            ("postgres://u:p%40hush@h/d", Ok("postgres://h:5432/d")),
            ("postgres://u:hush/hush@h/d", Ok("postgres://h:5432/d")),
            (
                "postgres://u:hush?hush@h/d?sslmode=disable",
                Ok("postgres://h:5432/d"),
            ),
            ("postgres://u:hush#hu%sh:1@h/d", Ok("postgres://h:5432/d")),
            (
                "postgres://u:hush@[2001:db8::1],g:7/d",
                Ok("postgres://[2001:db8::1]:5432,g:7/d"),
            ),
            (
                "postgres://u:hush@%2Frun%2Fpg/d",
                Ok("postgres:///run/pg:5432/d"),
            ),
            ("postgres://hush@h/d", Ok("postgres://h:5432/d")),
            (
                "postgres://h/d?user=hush&password=hush&options=hush",
                Ok("postgres://h:5432/d"),
            ),
            (
                "postgres://u%3Ahush%40h/d",
                Err(ParseStoreAddressError::Postgres),
            ),
            (
                "postgres://u@:5432/d",
                Err(ParseStoreAddressError::Postgres),
            ),
            (
                "postgres://u:hush@/d",
                Err(ParseStoreAddressError::Postgres),
            ),
            ("postgres://u:hush/d", Err(ParseStoreAddressError::Postgres)),
            (
                "postgres://u@h/d?host=u:hush%40g",
                Err(ParseStoreAddressError::Postgres),
            ),
            (
                "postgres://u@h/d?password=p&hush=hush",
                Err(ParseStoreAddressError::Parameter("parameter".to_owned())),
            ),
            (
                "postgres://u@h/d?hush",
                Err(ParseStoreAddressError::Parameter("parameter".to_owned())),
            ),
            ("postgress://u:hush@h/d", Err(ParseStoreAddressError::Kind)),
            ("Postgres://u:P@hush@h/d", Err(ParseStoreAddressError::Kind)),
            ("mysql://u:hush@h/d", Err(ParseStoreAddressError::Kind)),
            (
                "host=h user=u password=hush",
                Err(ParseStoreAddressError::Kind),
            ),
        ] {
            let parsed = parse(address);
            let shown = match &parsed {
                Ok(address) => format!("{address} {address:?}"),
                Err(error) => format!("{} {error} {error:?}", error.found()),
            };
            assert!(!shown.contains("hush"), "{address}: {shown}");
            let parsed = parsed.map(|address| address.to_string());
            assert_eq!(parsed, expected.map(str::to_owned), "{address}");
        }
        let StoreAddress::Postgres(plain) = parse("postgres://u:a/b?c#d:e%41@h/d").unwrap() else {
            panic!("a server")
        };
        assert_eq!(plain.config().get_user(), Some("u"));
        assert_eq!(plain.config().get_password(), Some(&b"a/b?c#d:eA"[..]));
    }

    #[test]
    fn an_unknown_parameter_is_named() {
        for (pair, name) in [
            ("ssl_mode=require", "ssl_mode"),
            ("connect_timeout=soon", "connect_timeout"),
        ] {
            let error = parse(&format!("postgres://u:hush@h/d?user=v&{pair}")).unwrap_err();
            assert!(
                error.found().contains(&format!("{name:?}")),
                "{}",
                error.found()
            );
            assert!(error.to_string().contains("application_name, "), "{error}");
        }
        for known in PARAMETERS.split(", ").filter(|name| *name != "sslmode") {
            let unknown = parse(&format!("postgres://u@h/d?{known}=1")).err();
            let unknown = unknown.map(|error| error.found());
            let valid = [
                "sslnegotiation",
                "target_session_attrs",
                "channel_binding",
                "load_balance_hosts",
            ];
            assert!(
                unknown.is_none() || valid.contains(&known) || known == "hostaddr",
                "{known}"
            );
        }
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
                ParseStoreAddressError::Parameter("nonsense".to_owned()),
            ),
            (
                "postgres://u:hush@h:port/d",
                ParseStoreAddressError::Postgres,
            ),
            ("postgres://u:hush@h", ParseStoreAddressError::Postgres),
            ("postgres:///d", ParseStoreAddressError::Postgres),
        ] {
            assert!(!error.to_string().contains("hush"));
            assert_eq!(parse(bad), Err(error), "{bad}");
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
