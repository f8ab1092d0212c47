//! Backups of the store's data.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::response;
use crate::service::BackedUp;

/// A completed backup.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Backup {
    /// Directory of the backup on the server, which can be used as a data directory.
    path: String,
    /// Number of files in the backup.
    files: u64,
    /// Total size of the files in bytes. Files that the data directory still uses are hard links and take no additional
    /// disk space.
    bytes: u64,
}

/// Make a backup
///
/// Copies a consistent snapshot of the embedded store's data directory to a new directory in the configured
/// `backup_dir`, while reads and writes continue. The backup contains every write that was acknowledged before the
/// request. The response is sent when the backup is complete and synced to disk. The request has no body.
#[utoipa::path(
    post, path = "/v1/backup", operation_id = "makeBackup", tag = "operations",
    responses((status = 201, description = "The backup is complete.", body = Backup,
        example = json!({"path": "/var/backups/rolltop/20261121T040000000Z", "files": 9, "bytes": 71_303_168}))),
)]
pub(super) async fn make(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let BackedUp { path, files, bytes } = call.service().backup(&call.caller).await?;
    let backup = Backup { path: path.display().to_string(), files, bytes };
    Ok(response::json_with(StatusCode::CREATED, &backup))
}
