//! `rolltop serve`: runs the service until it is stopped.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use crate::app::{Application, StartError};
use crate::config::{Config, Settings, StoreChoice};
use crate::http::ConsoleMode;
use crate::{descriptors, telemetry};

use super::CommandError;
use super::first_steps::first_steps;
use super::format::has_colors;
use super::signals::{StopSignals, survive_file_size_limit};

/// The configuration to serve with.
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// The configuration file [default: config/rolltop.toml if it exists, otherwise the built-in copy]
    #[arg(long, env = "ROLLTOP_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: ServeArgs) -> Result<(), CommandError> {
    let config =
        Config::load(args.config.as_deref(), args.settings).map_err(|error| CommandError::WrongConfig(error.into()))?;
    telemetry::start_logging(config.log_format);
    descriptors::raise_limit();
    survive_file_size_limit()?;
    let application = Application::build(&config).await.map_err(|error| match error {
        StartError::Board { .. } | StartError::NoKeys { .. } | StartError::Tls(_) => {
            CommandError::WrongConfig(error.into())
        }
        error => CommandError::Failed(error.into()),
    })?;
    let mut signals = StopSignals::new()?;
    print_banner(&config, &application);
    Ok(application.run_until_stopped(async || signals.next().await).await?)
}

fn print_banner(config: &Config, application: &Application) {
    let base = format!("{}://{}", application.scheme(), application.address());
    let store = match &config.store {
        StoreChoice::Embedded => {
            let folder = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
            format!("embedded, data in {}", folder.display())
        }
        StoreChoice::Redis(_) => format!("redis, keys under {}:", config.redis_prefix),
    };
    let console = match config.console {
        ConsoleMode::Off => String::new(),
        mode => format!("\n  console     {base}/ ({})", mode.as_str()),
    };
    let explorer = if config.explorer { format!("\n  Swagger UI  {base}/swagger-ui/") } else { String::new() };
    let mut greeting = format!(
        "rolltop {version} is running\n  API         {base}/v1/boards{console}{explorer}\n  \
         store       {store}\n  boards      {boards} from {source}\n",
        version = env!("CARGO_PKG_VERSION"),
        boards = config.boards.len(),
        source = config.source,
    );
    if io::stdout().is_terminal() {
        let program = std::env::args_os().next().unwrap_or_default();
        greeting.push('\n');
        greeting += &first_steps(config, &base, &program.to_string_lossy(), has_colors(&io::stdout()));
    }
    // Standard output may be closed, or a file on a full disk. The service must run in any case.
    let _ = io::stdout().write_all(greeting.as_bytes());
}
