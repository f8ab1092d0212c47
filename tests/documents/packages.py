"""Installs the clients, so that examples use them as the users of their packages do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def quietly(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"documents: {' '.join(command)} in {folder} fails:\n{done.stdout}{done.stderr}")


def newest(folder: Path) -> float:
    """Returns when a file of the package was changed last."""
    skipped = ("node_modules", "dist", "__pycache__")
    return max(p.stat().st_mtime for p in folder.rglob("*") if p.is_file() and not any(s in p.parts for s in skipped))


def python_client(root: Path, target: Path) -> Path:
    """Installs the Python client, and returns the Python that has it."""
    # What `tests/run clients` has made, which has what builds the package.
    venv = root / "target/clients/python/venv"
    if not (venv / "bin/pip").exists():
        venv = target / "venv"
    done = target / "python-installed"
    package = root / "clients/python"
    if done.exists() and done.read_text() == str(venv) and done.stat().st_mtime > newest(package):
        return venv / "bin/python"
    pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    if not (venv / "bin/pip").exists():
        quietly([sys.executable, "-m", "venv", str(venv)], root)
        quietly([*pip, str(package)], root)
    elif venv == target / "venv":
        quietly([*pip, "--force-reinstall", "--no-deps", str(package)], root)
    else:
        quietly([*pip, "--force-reinstall", "--no-deps", "--no-build-isolation", str(package)], root)
    done.write_text(str(venv))
    return venv / "bin/python"


def typescript_client(root: Path, target: Path) -> Path:
    """Packs and installs the TypeScript client, and returns the folder in which modules can import it."""
    package, folder = root / "clients/typescript", target / "node"
    done = folder / "installed"
    if done.exists() and done.stat().st_mtime > newest(package):
        return folder
    if not (package / "node_modules").exists():
        quietly(["npm", "ci", "--no-audit", "--no-fund"], package)
    quietly(["npm", "run", "--silent", "build"], package)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    quietly(["npm", "pack", "--silent", "--pack-destination", str(folder)], package)
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
    archive = next(folder.glob("rolltop-*.tgz"))
    quietly(["npm", "install", "--silent", "--no-audit", "--no-fund", f"./{archive.name}"], folder)
    done.touch()
    return folder


def rust_crate(root: Path, target: Path, dependencies: str, main: str) -> Path:
    """Packs the Rust client, compiles a program with it in an empty project, and returns the program.

    `dependencies` is what stands in the Cargo.toml of the project, with the path of a clone."""
    folder = target / "rust"
    folder.mkdir(parents=True, exist_ok=True)
    package = ["cargo", "package", "--quiet", "--locked", "--allow-dirty", "--no-verify", "-p", "rolltop-client"]
    quietly([*package, "--target-dir", str(folder / "packed")], root)
    archive = next((folder / "packed/package").glob("rolltop-client-*.crate"))
    shutil.rmtree(folder / "unpacked", ignore_errors=True)
    shutil.unpack_archive(archive, folder / "unpacked", "gztar", filter="data")
    unpacked = next((folder / "unpacked").iterdir())
    project = folder / "project"
    (project / "src").mkdir(parents=True, exist_ok=True)
    manifest = '[package]\nname = "example"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n\n' + dependencies
    (project / "Cargo.toml").write_text(manifest.replace("rolltop/clients/rust", str(unpacked)))
    (project / "src/main.rs").write_text(main)
    # The versions with which everything else is tested.
    shutil.copy(root / "Cargo.lock", project / "Cargo.lock")
    quietly(["cargo", "build", "--quiet", "--config", "profile.dev.debug=0", "--target-dir", str(folder / "built")], project)
    return folder / "built/debug/example"


def compiler(root: Path) -> str:
    """Returns the TypeScript compiler."""
    return os.fspath(root / "clients/typescript/node_modules/.bin/tsc")
