//! The services of docker-compose.yml, as processes on loopback. Their configuration is conf/compose, except for the
//! addresses, the path of the secrets, and the store, which is the one that the tests use.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Child, Command},
};

use end_to_end::{
    folder::Folder,
    program::{Instance, Program, Running},
    signed_client::SignedClient,
    store::{Store, StoreKind},
    waiting::until,
};
use serde_json::Value;

use super::{local_config::LocalConfig, output, project, start_proxy};

/// Running programs. Dropping this ends them and removes their files.
pub(super) struct Installation {
    // The order matters: programs end before the store and the folder are removed.
    front: Child,
    programs: Vec<(Instance, Running)>,
    local: LocalConfig,
    _store: Box<dyn Store>,
    folder: Folder,
    client: Option<SignedClient>,
}

impl Installation {
    pub(super) async fn start() -> Self {
        let folder = Folder::create();
        let store = StoreKind::chosen().create(folder.path());
        let local = LocalConfig::choose(&*store, folder.path());
        write_secrets(&*store, folder.path());
        local.write_files(folder.path());
        let programs = local.start(folder.path());
        let mut installation = Self {
            front: start_front(folder.path()),
            programs,
            local,
            _store: store,
            folder,
            client: None,
        };
        installation.await_health().await;
        installation.client = Some(installation.create_application());
        installation
    }

    /// A client of the only application, which calls the front.
    pub(super) fn client(&self) -> SignedClient {
        self.client.clone().expect("the installation was started")
    }

    /// The address of a backend.
    pub(super) fn backend(&self) -> SocketAddr {
        self.local.address_of("v1-a")
    }

    /// Where the front listens for clients.
    pub(super) fn front(&self) -> SocketAddr {
        self.local.front
    }

    pub(super) fn kill(&mut self, instance: Instance) {
        let found = self.programs.iter_mut().find(|(one, _)| *one == instance);
        found.expect("the program was started").1.kill();
    }

    /// The log of a process of this program, once it contains the text.
    pub(super) async fn log_with(&self, program: Instance, text: &str) -> String {
        until(&format!("{text} in a log of {program}"), || async {
            let mut logs = self
                .programs
                .iter()
                .filter(|(one, _)| one.program == program.program);
            logs.find_map(|(_, running)| Some(running.log()).filter(|log| log.contains(text)))
        })
        .await
    }

    pub(super) fn front_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("front.log")).unwrap()
    }

    /// Waits for the health checks of the containers to pass, then for a gateway's checks of its backends, which are started
    /// before it.
    async fn await_health(&mut self) {
        for (instance, _) in &self.programs {
            let config = self.config(*instance);
            let mut arguments = vec!["health", "--config", &config];
            let provider = self.local.provider_arguments();
            if instance.program == Program::Provider {
                arguments = provider.iter().map(String::as_str).collect();
                arguments.push("--health");
            }
            until(&format!("{instance} to be healthy"), || async {
                let checked = instance.program.run(self.folder.path(), &arguments);
                let said = String::from_utf8_lossy(&checked.stdout);
                // It is ready without healthy backends, too.
                let is_healthy = instance.program != Program::Gateway || said.trim() == "ready";
                (checked.status.success() && is_healthy).then_some(())
            })
            .await;
        }
        let health = format!("http://{}/healthz", self.local.front_health);
        until("the front to be healthy", || async {
            let checked = end_to_end::signed_client::http_client()
                .get(&health)
                .send()
                .await;
            checked
                .ok()
                .filter(|response| response.status().is_success())
        })
        .await;
    }

    fn config(&self, instance: Instance) -> String {
        self.folder
            .path()
            .join(format!("{instance}.toml"))
            .display()
            .to_string()
    }

    fn create_application(&self) -> SignedClient {
        let config = self.config(Program::Gateway.into());
        let arguments = ["app", "create", "Demo", "--json", "--config", &config];
        let created = output(Program::Gateway.command(self.folder.path()).args(arguments));
        let json = created
            .lines()
            .find(|line| line.starts_with('{'))
            .unwrap_or(&created);
        let created: Value = serde_json::from_str(json).unwrap();
        let member = |name: &str| created[name].as_str().unwrap().to_owned();
        SignedClient::new(&format!("http://{}", self.local.front), &member("key"))
            .with_app(&member("ident"))
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        // Fails only if it has already exited.
        let _ = self.front.kill();
        let _ = self.front.wait();
    }
}

fn write_secrets(store: &dyn Store, folder: &Path) {
    let secrets = folder.join("secrets");
    output(Command::new(project("scripts/secrets")).arg(&secrets));
    if let Some(password) = store.password() {
        let file = secrets.join("postgres_password");
        fs::remove_file(&file).unwrap();
        fs::write(&file, password).unwrap();
    }
}

pub(super) fn start_front(folder: &Path) -> Child {
    start_proxy("haproxy", &["-db", "-f", "haproxy.cfg"], folder)
}
