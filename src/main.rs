#[tokio::main]
async fn main() -> anyhow::Result<()> {
    rolltop::cli::run().await
}
