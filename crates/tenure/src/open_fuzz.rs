//! Fuzz target of store URLs: no error repeats a password.

use tenure_fuzz::Target;

use super::Place;

#[test]
fn no_error_about_a_store_url_repeats_its_password() {
    let words = &[
        "postgres://",
        "postgresql://",
        "sqlite://",
        "memory:",
        "me:s3cr3t@",
        "s3cr3t",
        "host",
        "[::1]",
        ":5432",
        "/jobs",
        "?",
        "&",
        "sslmode=verify-full",
        "sslrootcert=",
        "sslcert=",
        "sslkey=",
        "password=s3cr3t",
        "host=",
        "options=",
        "%40",
        "%2F",
        "@",
        ",",
        "connect_timeout=",
        "target_session_attrs=",
        "tcp_user_timeout=",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "store_url").words(words).check_text(|text| {
        match Place::of(text) {
            Ok(Place::Memory) => "memory".to_owned(),
            Ok(Place::Sqlite(_)) => "sqlite".to_owned(),
            #[cfg(feature = "postgres")]
            Ok(Place::Postgres) => "postgres".to_owned(),
            Err(error) => {
                let told = error.to_string();
                // The name of an unknown scheme is no secret.
                let is_scheme = text.split_once(':').is_none_or(|(scheme, _)| scheme.contains("s3cr3t"));
                assert!(is_scheme || !told.contains("s3cr3t"), "{told}");
                told
            }
        }
    });
}
