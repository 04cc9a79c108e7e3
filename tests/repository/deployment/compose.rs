//! docker-compose.yml, and the files that it mounts into containers.

use std::{collections::BTreeSet, fs, net::Ipv4Addr, process::Command};

use end_to_end::{
    folder::Folder,
    logins::{credential, log_in_by_polling},
    program::Program,
    raw_connection::RawConnection,
    signed_client::fetch,
    versions::versions,
    waiting::until,
};
use toml::Table;

use super::{installation::Installation, output, project, read};

/// Compose's own parser, of either generation. Neither needs an engine for this.
fn parser() -> Command {
    let is_plugin = Command::new("docker").args(["compose", "version"]).output();
    if is_plugin.is_ok_and(|output| output.status.success()) {
        let mut command = Command::new("docker");
        command.arg("compose");
        command
    } else {
        Command::new("docker-compose")
    }
}

/// All of the file's profiles.
const PROFILES: [&str; 4] = ["--profile", "demo", "--profile", "observe"];

fn gateway() -> Table {
    read("conf/compose/gateway.toml").parse().unwrap()
}

/// The name that follows each occurrence of `start`.
fn after<'t>(text: &'t str, start: &'t str) -> impl Iterator<Item = &'t str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_.-/:".contains(letter);
    text.match_indices(start).map(move |(offset, _)| {
        let rest = &text[offset + start.len()..];
        &rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())]
    })
}

#[test]
fn compose_reads_the_file_and_finds_every_service() {
    let file = project("docker-compose.yml");
    let mut command = parser();
    let command = command.arg("--file").arg(file).args(PROFILES);
    let printed = output(command.args(["config", "--services"]));
    // A line with spaces is a warning.
    let services: BTreeSet<_> = printed.lines().filter(|line| !line.contains(' ')).collect();
    let expected = [
        "front",
        "gateway-a",
        "gateway-b",
        "grafana",
        "otel-collector",
        "postgres",
        "prometheus",
        "sandbox-provider",
    ];
    let mut expected = BTreeSet::from(expected.map(str::to_owned));
    for version in versions() {
        expected.extend(["a", "b"].map(|one| format!("{}-{one}", version.name)));
    }
    let expected: BTreeSet<_> = expected.iter().map(String::as_str).collect();
    assert_eq!(services, expected, "{printed}");
}

/// Issue 22, row 19: a container that is out of bounds ends alone.
#[test]
fn every_container_has_limits_of_memory_and_processes() {
    let mut command = parser();
    let file = project("docker-compose.yml");
    let command = command.arg("--file").arg(file).args(PROFILES);
    let services = output(
        Command::new(command.get_program())
            .args(command.get_args())
            .args(["config", "--services"]),
    );
    let services = services.lines().filter(|line| !line.contains(' ')).count();
    let printed = output(command.arg("config"));
    for limit in ["mem_limit: ", "pids_limit: "] {
        assert_eq!(
            printed.matches(limit).count(),
            services,
            "{limit}: {printed}"
        );
    }
    // As in the units.
    let limits = |text: &str, memory: &str, tasks: &str| {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
            line.unwrap().trim().to_lowercase()
        };
        (value(memory), value(tasks))
    };
    let compose = read("docker-compose.yml");
    for (service, unit) in [
        ("gateway-a:", "signpost"),
        ("v1-a:", "login@"),
        ("v2-a:", "login@"),
    ] {
        let (_, service) = compose.split_once(&format!("\n  {service}")).unwrap();
        let unit = read(&format!("conf/systemd/{unit}.service"));
        assert_eq!(
            limits(service, "mem_limit:", "pids_limit:"),
            limits(&unit, "MemoryMax=", "TasksMax=")
        );
    }
}

#[test]
fn nothing_is_published_beyond_this_machine() {
    let file = read("docker-compose.yml");
    let ports: Vec<_> = file
        .lines()
        .filter(|line| line.trim_start().starts_with("ports:"))
        .collect();
    // The front, the sandbox provider and Grafana.
    assert_eq!(ports.len(), 3, "{ports:?}");
    assert!(
        ports.iter().all(|line| line.contains("127.0.0.1:")),
        "{ports:?}"
    );
}

#[test]
fn gateways_use_the_names_and_addresses_of_the_services() {
    let file = read("docker-compose.yml");
    let gateway = gateway();
    for version in versions().iter().map(|version| version.name) {
        let listen: Table = read(&format!("conf/compose/{version}.toml"))
            .parse()
            .unwrap();
        let port = listen["listen"]
            .as_str()
            .unwrap()
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned();
        let backends = gateway["versions"][version]["backends"].as_array().unwrap();
        assert_eq!(backends.len(), 2);
        for backend in backends {
            let (name, backend_port) = backend.as_str().unwrap().split_once(':').unwrap();
            assert!(file.contains(&format!("\n  {name}: ")), "{name}");
            assert_eq!(backend_port, port, "{name}");
        }
    }
    // The address of the front, with the default of its variable.
    let network = after(&file, "ipv4_address: \"${SIGNPOST_EDGE:-").next();
    let front = [format!("{}.10", network.unwrap())];
    let trusted = gateway["trusted_proxies"].as_array().unwrap();
    assert_eq!(
        trusted
            .iter()
            .map(|proxy| proxy.as_str().unwrap())
            .collect::<Vec<_>>(),
        front
    );
}

/// A vanished container neither accepts nor refuses a connection.
#[test]
fn a_vanished_container_costs_a_request_one_second_at_most() {
    let seconds = gateway()["timeouts"]["connect_seconds"].as_integer();
    assert_eq!(seconds, Some(1));
}

/// What two stacks on one machine must not share is a variable.
#[test]
fn a_second_stack_has_ports_networks_and_files_of_its_own() {
    let file = project("docker-compose.yml");
    let folder = Folder::create();
    let path = folder.path().display().to_string();
    let settings = [
        ("SIGNPOST_LISTEN", "127.0.0.1:8180"),
        ("SIGNPOST_PUBLIC_URL", "http://127.0.0.1:8180"),
        ("SIGNPOST_SANDBOX_PORT", "7200"),
        ("SIGNPOST_GRAFANA", "127.0.0.1:3200"),
        ("SIGNPOST_EDGE", "172.31.254"),
        ("SIGNPOST_CONF", &path),
        ("SIGNPOST_SECRETS", &path),
    ];
    let mut command = parser();
    let command = command.arg("--file").arg(file).args(PROFILES);
    let printed = output(command.arg("config").envs(settings));
    for present in [
        "8180",
        "7200",
        "3200",
        "172.31.254.10",
        "172.31.254.0/24",
        &path,
    ] {
        assert!(printed.contains(present), "{present}: {printed}");
    }
    for absent in ["7100", "172.31.253", "conf/compose", "data/secrets"] {
        assert!(!printed.contains(absent), "{absent}: {printed}");
    }
}

#[test]
fn each_secret_is_created_and_mounted() {
    let folder = Folder::create();
    let secrets = folder.path().join("secrets");
    let create = || output(Command::new(project("scripts/secrets")).arg(&secrets));
    create();
    let content = |name: &str| fs::read_to_string(secrets.join(name)).unwrap();
    let compose = read("docker-compose.yml");
    let mounted: BTreeSet<_> = after(&compose, "${SIGNPOST_SECRETS:-data/secrets}/").collect();
    let created = fs::read_dir(&secrets).unwrap();
    let created: BTreeSet<_> = created
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        created,
        mounted.iter().map(|name| (*name).to_owned()).collect()
    );
    let files = versions().into_iter().map(|version| version.name);
    for file in files.chain(["gateway"]) {
        let text = read(&format!("conf/compose/{file}.toml"));
        for named in after(&text, "file:/run/secrets/") {
            assert!(mounted.contains(named), "{file}: {named}");
        }
    }
    let first = content("master_key");
    assert_eq!(first.len(), 64);
    assert_ne!(first, content("gateway_secret"));
    create();
    assert_eq!(
        content("master_key"),
        first,
        "an existing secret is not replaced"
    );
}

#[tokio::test]
async fn the_installation_serves_and_survives_the_loss_of_a_gateway() {
    let mut installation = Installation::start().await;
    let client = installation.client();
    for (version, user) in [("v1", "ada"), ("v2", "grace")] {
        let login = log_in_by_polling(&client, user).await;
        let me = client
            .get("/user")
            .version(version)
            .authorization(credential(&login))
            .send()
            .await;
        me.ok();
    }
    // The access line has the address of the front's client, not of the front.
    let elsewhere = Ipv4Addr::new(127, 0, 0, 2).into();
    let mut connection = RawConnection::open_from(elsewhere, installation.front()).await;
    connection.send(&client.get("/user").bytes(&[])).await;
    assert_eq!(connection.response().await.unwrap().status, 401);
    installation
        .log_with(Program::Gateway.into(), "client.addr=127.0.0.2 ")
        .await;
    // A request that bypasses the gateway is rejected.
    let direct = fetch(&format!("http://{}/user", installation.backend())).await;
    direct.problem(403, "gateway_required");

    installation.kill(Program::Gateway.number(1));
    until("the front to stop using the dead gateway", || async {
        let mut all = true;
        for _ in 0..4 {
            // A request in flight to it is cut off.
            let sent = client.get("/user").try_send().await;
            all &= sent.is_ok_and(|response| response.status == 401);
        }
        all.then_some(())
    })
    .await;
    let log = installation.front_log();
    assert!(
        log.contains("POST /login 200") && log.contains("GET /user 401"),
        "{log}"
    );
    for secret in ["sign=", "state=", "code=", "token="] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
