"""The programs that are compared: those that are there, else installed, each with a message."""

import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, "target", "peers-venv")
CHDB = ["chdb==4.4.0", "chdb-core==26.9.0"]


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def output(*arguments):
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _install(package):
    if os.getuid() != 0 or not shutil.which("apt-get"):
        say(f"{package} is missing and cannot be installed without root on Debian")
        return
    say(f"{package} is missing: installing it with apt-get")
    keep = ["-o", "Dpkg::Options::=--force-confold"]  # settings that are there already
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *keep, package]):
        done = subprocess.run(["apt-get", *arguments], env=environment, stdout=sys.stderr)
        if done.returncode != 0:
            say(f"apt-get {arguments[0]} failed")
            return


def _postgres_folder():
    """Where initdb and postgres are; of several versions the newest."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    if found:
        return os.path.dirname(max(found, key=lambda path: int(path.split("/")[4])))
    both = shutil.which("initdb") and shutil.which("postgres")
    return os.path.dirname(shutil.which("postgres")) if both else None


class Tools:
    def __init__(self, options):
        self.rolltop = None
        self.postgres = None
        self.chdb_python = None
        self.versions = []
        wanted = options.systems
        if "rolltop" in wanted or "rolltop-redis" in wanted:
            self._find_rolltop(options.rolltop)
        if "redis" in wanted or "rolltop-redis" in wanted:
            if not shutil.which("redis-server"):
                _install("redis-server")
            if shutil.which("redis-server"):
                self.versions.append("Redis " + output("redis-server", "--version").split("v=")[1].split()[0])
        if "postgres" in wanted:
            self._find_postgres()
        if "clickhouse" in wanted:
            self._find_chdb()

    def _find_rolltop(self, program):
        if not program:
            say("building Rolltop")
            subprocess.run(["cargo", "build", "--profile", "dist", "--locked"], cwd=ROOT, check=True, stdout=sys.stderr)
            program = os.path.join(ROOT, "target", "dist", "rolltop")
        self.rolltop = os.path.abspath(program)
        self.versions.append("Rolltop " + output(self.rolltop, "--version").split()[-1])

    def _find_postgres(self):
        self.postgres = _postgres_folder()
        if not self.postgres:
            # Debian's package would start a cluster of its own, unless this file says otherwise.
            settings = "/etc/postgresql-common/createcluster.conf"
            if os.getuid() == 0 and not os.path.exists(settings):
                os.makedirs(os.path.dirname(settings), exist_ok=True)
                with open(settings, "w") as file:
                    file.write("create_main_cluster = false\n")
            _install("postgresql")
            self.postgres = _postgres_folder()
        if self.postgres:
            version = output(os.path.join(self.postgres, "postgres"), "--version")
            self.versions.append("PostgreSQL " + version.split()[2])

    def _find_chdb(self):
        python = os.path.join(VENV, "bin", "python")
        question = "import chdb.session, chdb; print(chdb.engine_version)"
        if not os.path.exists(python) or subprocess.run([python, "-c", "import chdb.session"]).returncode != 0:
            say(f"installing the Python package chdb into {os.path.relpath(VENV, ROOT)} (600 MB)")
            try:
                subprocess.run([sys.executable, "-m", "venv", VENV], check=True, stdout=sys.stderr)
                # What it depends on is for data frames, which are not used here.
                pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", *CHDB]
                subprocess.run(pip, check=True, stdout=sys.stderr)
                subprocess.run([python, "-c", "import chdb.session"], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                say(f"chdb cannot be had: {error}")
                return
        self.chdb_python = python
        self.versions.append("ClickHouse " + output(python, "-c", question))
