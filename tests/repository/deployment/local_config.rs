//! The files of conf/compose with the addresses and paths of this machine, and the programs that use them.

use std::{fs, net::SocketAddr, path::Path};

use end_to_end::{
    port::free_address,
    program::{Instance, Program, Running},
    store::{Store, StoreKind},
    versions::{Version, versions},
};
use url::Url;

use super::read_replaced;

/// Addresses, store and secrets of this machine, in place of those of the containers.
pub(super) struct LocalConfig {
    pub(super) front: SocketAddr,
    pub(super) front_health: SocketAddr,
    provider: SocketAddr,
    /// Gateways and backends, with the names of their containers.
    named: Vec<(String, Instance, SocketAddr)>,
    store: String,
    secrets: String,
}

impl LocalConfig {
    pub(super) fn choose(store: &dyn Store, folder: &Path) -> Self {
        let versions = versions().into_iter().map(|one| (one.name, one.program));
        let programs = versions.chain([("gateway", Program::Gateway)]);
        let named = programs.flat_map(|(name, program)| {
            let two = ["a", "b"].into_iter().enumerate();
            two.map(move |(number, letter)| (format!("{name}-{letter}"), program.number(number)))
        });
        Self {
            front: free_address(),
            front_health: free_address(),
            provider: free_address(),
            named: named
                .map(|(name, instance)| (name, instance, free_address()))
                .collect(),
            store: without_password(store),
            secrets: folder.join("secrets").display().to_string(),
        }
    }

    pub(super) fn address_of(&self, name: &str) -> SocketAddr {
        let found = self.named.iter().find(|(one, _, _)| one == name);
        found.expect("there is a container of that name").2
    }

    pub(super) fn write_files(&self, folder: &Path) {
        let front = read_replaced(
            "conf/compose/haproxy.cfg",
            &[
                ("bind :8080", &format!("bind {}", self.front)),
                (
                    "bind 127.0.0.1:8090",
                    &format!("bind {}", self.front_health),
                ),
                ("gateway-a:8080", &self.address_of("gateway-a").to_string()),
                ("gateway-b:8080", &self.address_of("gateway-b").to_string()),
            ],
        );
        fs::write(folder.join("haproxy.cfg"), front).unwrap();
        for (_, instance, address) in &self.named {
            let text = match instance.program {
                Program::Gateway => self.gateway_file(*address),
                program => self.backend_file(&version_of(program), *address),
            };
            fs::write(folder.join(format!("{instance}.toml")), text).unwrap();
        }
    }

    fn gateway_file(&self, listen: SocketAddr) -> String {
        let mut replacements = vec![
            ("0.0.0.0:8080".to_owned(), listen.to_string()),
            ("172.31.253.10".to_owned(), "127.0.0.1".to_owned()),
            // A container has this address for itself; the gateways here share a machine.
            ("0.0.0.0:8081".to_owned(), free_address().to_string()),
        ];
        for (name, instance, address) in &self.named {
            if instance.program != Program::Gateway {
                let port = version_of(instance.program).port;
                replacements.push((format!("{name}:{port}"), address.to_string()));
            }
        }
        self.program_file("gateway.toml", &replacements)
    }

    fn backend_file(&self, version: &Version, listen: SocketAddr) -> String {
        let provider = format!("http://{}", self.provider);
        self.program_file(
            &format!("{}.toml", version.name),
            &[
                (format!("0.0.0.0:{}", version.port), listen.to_string()),
                ("0.0.0.0:9100".to_owned(), free_address().to_string()),
                ("http://provider.localhost:7100".to_owned(), provider),
            ],
        )
    }

    fn program_file(&self, name: &str, replacements: &[(String, String)]) -> String {
        let front = format!("http://{}", self.front);
        let mut all = vec![
            ("http://127.0.0.1:8080", front.as_str()),
            (
                "postgres://signpost@postgres:5432/signpost?sslmode=disable",
                &self.store,
            ),
            ("/run/secrets", &self.secrets),
        ];
        all.extend(
            replacements
                .iter()
                .map(|(from, to)| (from.as_str(), to.as_str())),
        );
        read_replaced(&format!("conf/compose/{name}"), &all)
    }

    pub(super) fn provider_arguments(&self) -> [String; 2] {
        [
            format!("--listen={}", self.provider),
            format!("--callback=http://{}/login", self.front),
        ]
    }

    pub(super) fn start(&self, folder: &Path) -> Vec<(Instance, Running)> {
        let provider = (Program::Provider.into(), self.provider_arguments().to_vec());
        let named = self.named.iter().map(|(_, instance, _)| {
            let config = folder
                .join(format!("{instance}.toml"))
                .display()
                .to_string();
            let mut arguments = vec!["--config".to_owned(), config];
            if instance.program == Program::Gateway {
                arguments.insert(0, "run".to_owned());
            }
            (*instance, arguments)
        });
        let all = named.chain([provider]);
        all.map(|(instance, arguments)| (instance, Running::start(instance, folder, &arguments)))
            .collect()
    }
}

fn version_of(program: Program) -> Version {
    let found = versions().into_iter().find(|one| one.program == program);
    found.expect("it is a version's program")
}

/// The store's address as in conf/compose: the password comes from a file.
fn without_password(store: &dyn Store) -> String {
    let mut address: Url = store.address().parse().unwrap();
    if store.kind() == StoreKind::Postgres {
        address.set_password(None).unwrap();
    }
    address.to_string()
}
