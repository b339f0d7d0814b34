//! Clients that common generators write from the description compile, and linters find no error in it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::clients::described;
use crate::installed::{self, in_python, said};
use crate::served::{ask, served};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::{TempDir, tempdir};

/// This package contains the generator as a `jar`, which needs Java.
const PYTHON: [&str; 1] = ["openapi-generator-cli==7.26.0"];
const NODE: [&str; 5] = [
    "orval@7.13.0",
    "@hey-api/openapi-ts@0.95.0",
    "@redocly/cli@2.77.0",
    "@stoplight/spectral-cli@6.16.3",
    "typescript@5.9.3",
];
const DOCUMENTS: [&str; 2] = ["openapi.json", "openapi-3.0.json"];

static GENERATOR: LazyLock<PathBuf> =
    LazyLock::new(|| in_python("openapi-generator", &PYTHON).join("openapi-generator-cli"));

static IN_NODE: LazyLock<PathBuf> =
    LazyLock::new(|| installed::in_node("typescript-generators", &NODE).unwrap());

/// A folder with both descriptions, in which programs for Node find their packages.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let kind = r##"{"description":"Bills a month","schema":{"title":"Bill","type":"object","required":["month"],
        "properties":{"month":{"$ref":"#/$defs/month"},"notes":{"type":"array","items":{"type":"string"}}},
        "$defs":{"month":{"title":"Month","type":"integer","maximum":12,"default":1}}}}"##;
    assert_eq!(ask(&address, "PUT", "/v1/kinds/bill", "", kind).0, 201);
    for document in DOCUMENTS {
        described(&address, document, folder.path());
    }
    std::os::unix::fs::symlink(IN_NODE.join("node_modules"), folder.path().join("node_modules")).unwrap();
    fs::write(folder.path().join("package.json"), "{\"type\":\"module\"}\n").unwrap();
    folder
}

fn in_node(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(IN_NODE.join("node_modules/.bin").join(program));
    command.current_dir(folder);
    command
}

/// Checks the types of a file and of all that it imports.
fn check_types(file: &str, folder: &Path) {
    let strictly = ["--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom"];
    let modules = ["--module", "esnext", "--moduleResolution", "bundler"];
    said(in_node("tsc", folder).args(strictly).args(modules).arg(file));
}

fn generated(language: &str, document: &str, folder: &Path, properties: &str) {
    let mut command = Command::new(&*GENERATOR);
    command.current_dir(folder).args(["generate", "-i", document, "-g", language, "-o", language]);
    said(command.args(["--additional-properties", properties]));
}

/// Compiles a client in Java. The generator's own `jar` contains the libraries that the client needs.
fn check_java(folder: &Path) {
    let jar = GENERATOR.parent().unwrap().join("../lib");
    let jar = said(Command::new("find").arg(jar).args(["-name", "openapi-generator.jar"]));
    let stub = folder.join("java/src/main/java/javax/annotation");
    fs::create_dir_all(&stub).unwrap();
    // This annotation marks every class, and was removed from Java 11.
    let generated = "package javax.annotation; public @interface Generated { String[] value(); String comments() default \"\"; }";
    fs::write(stub.join("Generated.java"), generated).unwrap();
    let sources = said(Command::new("find").current_dir(folder).args(["java/src/main", "-name", "*.java"]));
    fs::write(folder.join("sources"), sources).unwrap();
    let mut compile = Command::new("javac");
    compile.current_dir(folder).args([
        "-proc:none",
        "-nowarn",
        "-d",
        "classes",
        "-cp",
        jar.trim(),
        "@sources",
    ]);
    match compile.output() {
        Err(error) => eprintln!("NOT TRIED: a client in Java: {error}"),
        Ok(compiled) => assert!(compiled.status.success(), "{compiled:?}"),
    }
}

/// Each client has a function for the kind, and refuses args that break its schema.
fn check_kind(folder: &Path) {
    let calls = r#"import { JobsApi } from "./typescript-fetch/index";
import { enqueueBill as byOrval } from "./orval";
import { enqueueBill as byHey } from "./hey/index";
const [good, bad] = [{ args: { month: 5 }, queue: "bills" }, { args: { month: "May" } }];
void new JobsApi().enqueueBill({ billJob: good });
void byOrval(good);
void byHey({ body: good });
// @ts-expect-error: the month is a number.
void new JobsApi().enqueueBill({ billJob: bad });
// @ts-expect-error: the month is a number.
void byOrval(bad);
// @ts-expect-error: the month is a number.
void byHey({ body: bad });
"#;
    fs::write(folder.join("calls.ts"), calls).unwrap();
    check_types("calls.ts", folder);
}

#[test]
#[ignore = "writes and compiles clients of several generators: `cargo xtask test --long`"]
fn clients_of_common_generators_compile() {
    for document in DOCUMENTS {
        let folder = folder();
        let folder = folder.path();
        generated("typescript-fetch", document, folder, "packageName=tenure");
        check_types("typescript-fetch/index.ts", folder);
        said(
            in_node("orval", folder).args(["--input", document, "--output", "orval.ts", "--client", "fetch"]),
        );
        check_types("orval.ts", folder);
        said(in_node("openapi-ts", folder).args(["-i", document, "-o", "hey"]));
        check_types("hey/index.ts", folder);
        if document == DOCUMENTS[0] {
            check_kind(folder);
        }
        let plain = "openApiNullable=false,annotationLibrary=none,documentationProvider=none,hideGenerationTimestamp=true";
        generated("java", document, folder, &format!("library=native,{plain}"));
        check_java(folder);
        generated("go", document, folder, "packageName=tenure");
        let client = folder.join("go");
        fs::remove_dir_all(client.join("test")).unwrap();
        let mut build = Command::new("go");
        build.current_dir(client).env("GOFLAGS", "-mod=mod").args(["build", "./..."]);
        match build.output() {
            Err(error) => eprintln!("NOT TRIED: a client in Go: {error}"),
            Ok(built) => assert!(built.status.success(), "{document}: {built:?}"),
        }
    }
}

#[test]
#[ignore = "installs two linters: `cargo xtask test --long`"]
fn linters_find_no_error_in_the_descriptions() {
    let folder = folder();
    fs::write(folder.path().join("ruleset.yaml"), "extends: [\"spectral:oas\"]\n").unwrap();
    for document in DOCUMENTS {
        said(in_node("redocly", folder.path()).args(["lint", document, "--extends", "recommended"]));
        said(in_node("spectral", folder.path()).args(["lint", document, "--ruleset", "ruleset.yaml"]));
    }
}
