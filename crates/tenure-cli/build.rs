//! Has the linker leave out what only debuggers read, where the program is made to be shipped.
//!
//! The profile says `strip = "symbols"`, and Cargo forgets that of a package for which the profile says anything else, as it
//! says here how this one is optimised.

fn main() {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    if said("PROFILE") == "release" && said("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo:rustc-link-arg-bins=-Wl,--strip-all");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
