//! Backups of the store's data, made while it is in use.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, answer};
use crate::store::BackedUp;

/// A backup that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Backup {
    /// Its directory on the server, which can be used as a data directory.
    path: String,
    /// How many files it has.
    files: u64,
    /// How many bytes they have together. Files that the data directory still uses are linked, and take no further
    /// space on the disk.
    bytes: u64,
}

/// Make a backup
///
/// Copies the data directory of the embedded store, as it is at one instant, into a new directory below the configured
/// `backup_dir`, while reads and writes go on. The backup contains everything that was acknowledged before the request.
/// It is answered when the backup is complete and on the disk. The request has no body.
#[utoipa::path(
    post, path = "/v1/backup", operation_id = "makeBackup", tag = "operations",
    responses((status = 201, description = "The backup is made.", body = Backup,
        example = json!({"path": "/var/backups/rolltop/20261121T040000000Z", "files": 9, "bytes": 71_303_168}))),
)]
pub(super) async fn make(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let BackedUp { path, files, bytes } = state.service.backup().await?;
    let backup = Backup { path: path.display().to_string(), files, bytes };
    Ok(answer::json_with(StatusCode::CREATED, &backup))
}
