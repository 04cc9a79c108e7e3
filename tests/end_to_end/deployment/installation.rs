//! What docker-compose.yml starts, as processes on loopback. Their configuration is conf/compose as it is, but for
//! addresses, names of containers, the path of secrets, and the store, which is the one that the tests are on.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use end_to_end::{
    folder::Folder,
    program::{Instance, Program, Running},
    signed_client::SignedClient,
    store::{Store, StoreKind},
    waiting::until,
};
use serde_json::Value;

use super::{output, places::Places, project};

/// Running programs. They end, and their files go, when this is dropped.
pub(super) struct Installation {
    // The order matters: programs end before store and folder go.
    front: Child,
    programs: Vec<(Instance, Running)>,
    places: Places,
    _store: Box<dyn Store>,
    folder: Folder,
    client: Option<SignedClient>,
}

impl Installation {
    pub(super) async fn start() -> Self {
        let folder = Folder::create();
        let store = StoreKind::chosen().create(folder.path());
        let places = Places::choose(&*store, folder.path());
        write_secrets(&*store, folder.path());
        places.write_files(folder.path());
        let programs = places.start(folder.path());
        let mut installation = Self {
            front: start_front(folder.path()),
            programs,
            places,
            _store: store,
            folder,
            client: None,
        };
        installation.await_health().await;
        installation.client = Some(installation.create_application());
        installation
    }

    /// A client of the one application, at the front.
    pub(super) fn client(&self) -> SignedClient {
        self.client.clone().expect("the installation was started")
    }

    /// Where one of the backends listens.
    pub(super) fn backend(&self) -> SocketAddr {
        self.places.of("v1-a")
    }

    pub(super) fn kill(&mut self, instance: Instance) {
        let found = self.programs.iter_mut().find(|(one, _)| *one == instance);
        found.expect("the program was started").1.kill();
    }

    /// What either process of a program wrote, once that has a text in it.
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

    /// By what containers ask with.
    async fn await_health(&mut self) {
        for (instance, _) in &self.programs {
            let config = self.config(*instance);
            let arguments: Vec<&str> = match instance.program {
                Program::Gateway => vec!["health", "--config", &config],
                Program::Provider => continue,
                _ => vec!["--health", "--config", &config],
            };
            until(&format!("{instance} to be healthy"), || async {
                let asked = instance.program.run(self.folder.path(), &arguments);
                asked.status.success().then_some(())
            })
            .await;
        }
        let health = format!("http://{}/healthz", self.places.front_health);
        until("the front to be healthy", || async {
            let asked = end_to_end::signed_client::http_client()
                .get(&health)
                .send()
                .await;
            asked.ok().filter(|answer| answer.status().is_success())
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
        SignedClient::new(&format!("http://{}", self.places.front), &member("key"))
            .with_app(&member("ident"))
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        // Fails only when it has ended already.
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
    let log = File::create(folder.join("front.log")).unwrap();
    Command::new("haproxy")
        .args(["-db", "-f", "haproxy.cfg"])
        .current_dir(folder)
        .env("PATH", "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("scripts/prerequisites test installs haproxy")
}
