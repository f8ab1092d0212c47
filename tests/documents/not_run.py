"""The examples that cannot be run here: document, first line, why. Their syntax is checked nevertheless.

An entry that no example has is an error, so the list cannot grow old.
"""

NOT_RUN: list[tuple[str, str, str]] = [
    ("README.md", "tests/run", "it runs every test, also this one"),
    ("docs/clients.md", "(cd rolltop/clients/typescript && npm ci && npm run build && npm pack)", "packages.py does that"),
    ("docs/performance.md", "$ cargo build --profile dist --workspace && alias bench=target/dist/rolltop-bench", "minutes of measuring"),
    ("docs/access.md", "rolltop healthcheck --url https://rolltop.example:8443 --connect-to 127.0.0.1", "it needs a certificate"),
    ("docs/widget.md", 'document.addEventListener("rolltop-change", (event) => {', "the document of a browser"),
    ("docs/tokens.md", 'await fetch("https://rolltop.example/v1/events", { method: "POST", body: "{}",', "a page that has a token"),
    ("docs/tokens.md", 'const privateKey = await importPKCS8(await readFile("site.pem", "utf8"), "EdDSA");', "the package jose"),
]
