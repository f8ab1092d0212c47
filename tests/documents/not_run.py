"""The examples that cannot be run here: document, first line, why. Their syntax is checked nevertheless.

An entry that no example has is an error, so the list cannot grow old.
"""

NOT_RUN: list[tuple[str, str, str]] = [
    ("README.md", "tar -xzf rolltop-0.1.0-x86_64-unknown-linux-musl.tar.gz && cd rolltop-0.1.0-x86_64-unknown-linux-musl && ./rolltop", "deploy/packages/check does that"),
    ("docs/installing.md", "sudo apt-get install ./rolltop_0.1.0-1_amd64.deb", "deploy/packages/check does that"),
    ("docs/installing.md", "sudo -u rolltop env ROLLTOP_DATA_DIR=/var/lib/rolltop/data ROLLTOP_BACKUP_DIR=/var/lib/rolltop/backups \\", "deploy/packages/check does that"),
    ("docs/installing.md", "tar -xzf rolltop-0.1.0-x86_64-unknown-linux-musl.tar.gz", "deploy/packages/check does that"),
    ("docs/installing.md", "docker run --name rolltop -p 127.0.0.1:8080:8080 -v rolltop:/var/lib/rolltop -e ROLLTOP_ANONYMOUS=all IMAGE", "it needs a container engine"),
    ("docs/installing.md", "brew install ./rolltop.rb", "it needs Homebrew"),
    ("docs/installing.md", "cargo install --locked --path .", "a build of some minutes"),
    ("docs/installing.md", "cargo build --profile dist --locked --target x86_64-unknown-linux-musl --workspace --bin rolltop --bin rolltop-consume", "a build of some minutes"),
    ("docs/installing.md", "sha256sum --check --ignore-missing SHA256SUMS", "there is no release yet"),
    ("README.md", "tests/run", "it runs every test, also this one"),
    ("docs/clients.md", "(cd rolltop/clients/typescript && npm ci && npm run build && npm pack)", "packages.py does that"),
    ("docs/performance.md", "$ cargo build --profile dist --workspace && alias bench=target/dist/rolltop-bench", "minutes of measuring"),
    ("docs/access.md", "rolltop healthcheck --url https://rolltop.example:8443 --connect-to 127.0.0.1", "it needs a certificate"),
    ("docs/widget.md", 'document.addEventListener("rolltop-change", (event) => {', "the document of a browser"),
    ("docs/tokens.md", 'await fetch("https://rolltop.example/v1/events", { method: "POST", body: "{}",', "a page that has a token"),
    ("docs/tokens.md", 'const privateKey = await importPKCS8(await readFile("site.pem", "utf8"), "EdDSA");', "the package jose"),
    ("docs/like-button.md", 'import { rolltop } from "rolltop";', "the document of a browser"),
]
