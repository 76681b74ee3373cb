//! Certificates for a server and its clients, made by `openssl` for two days.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};

use crate::apt;

/// What the certificates are for. Only `localhost` is a name of the server.
const KINDS: &str = "[req]\ndistinguished_name=name\n[name]\n\
    [authority]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
    [server]\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost\n\
    [ca]\ndefault_ca=all\n[all]\ndefault_md=sha256\npolicy=any\nnew_certs_dir=.\ndatabase=index\nrand_serial=yes\n\
    [any]\ncommonName=supplied\n\
    [client]\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=clientAuth\n";

/// A folder with an authority (`authority.pem`), the certificates and keys of a server and a client that it has signed (`server.pem`,
/// `server.key`, `client.pem`, `client.key`), and those of another authority (`stranger.pem`). Dropping it removes the folder.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Creates the authority and signs the certificates.
    ///
    /// # Errors
    /// `openssl` is not installed or fails.
    pub fn make() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        apt::check_with("openssl", "openssl", "version")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tidegate-certificates-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let all = Self { folder };
        std::fs::write(all.path("kinds"), KINDS)?;
        all.sign("authority", "authority", None)?;
        all.sign("stranger", "authority", None)?;
        all.sign("server", "server", Some("authority"))?;
        all.sign("client", "client", Some("authority"))?;
        Ok(all)
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes a key and a certificate of this kind, signed by an authority or by itself.
    fn sign(&self, name: &str, kind: &str, authority: Option<&str>) -> Result<()> {
        let file = |name: &str, kind: &str| self.path(&format!("{name}.{kind}"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
        openssl.args(["-subj", &format!("/CN={name}"), "-extensions", kind, "-config"]).arg(self.path("kinds"));
        openssl.arg("-keyout").arg(file(name, "key")).arg("-out").arg(file(name, "pem"));
        if let Some(authority) = authority {
            openssl.arg("-CA").arg(file(authority, "pem")).arg("-CAkey").arg(file(authority, "key"));
        }
        let output = openssl.output().context("cannot start openssl")?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Makes `server.pem` again, with the same key and another time in which it is valid. The two are times of `date`, such as `-2 days`.
    ///
    /// # Errors
    /// `openssl` or `date` fails.
    pub fn sign_server(&self, from: &str, until: &str) -> Result<()> {
        let run = |program: &str, args: &[&str]| -> Result<String> {
            let output = Command::new(program).args(args).current_dir(&self.folder).output();
            let output = output.with_context(|| format!("cannot start {program}"))?;
            ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        let time = |words: &str| run("date", &["-u", "-d", words, "+%Y%m%d%H%M%SZ"]);
        std::fs::write(self.path("index"), "")?;
        run(
            "openssl",
            &["req", "-new", "-key", "server.key", "-subj", "/CN=server", "-config", "kinds", "-out", "server.csr"],
        )?;
        let dates = ["-startdate", &time(from)?, "-enddate", &time(until)?];
        let authority = ["-cert", "authority.pem", "-keyfile", "authority.key"];
        let files = [
            "ca",
            "-batch",
            "-notext",
            "-config",
            "kinds",
            "-extensions",
            "server",
            "-in",
            "server.csr",
            "-out",
            "server.pem",
        ];
        run("openssl", &[&files[..], &authority, &dates].concat()).map(drop)
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
