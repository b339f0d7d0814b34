# The template of the Homebrew formula. contrib/release/formula.sh fills in the version and the checksums.
class Tenure < Formula
  desc "Durable job queue, scheduler and lock service on SQLite or PostgreSQL"
  homepage "https://github.com/tenure-rs/tenure"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/tenure-rs/tenure/releases/download/v@VERSION@/tenure-v@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "https://github.com/tenure-rs/tenure/releases/download/v@VERSION@/tenure-v@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/tenure-rs/tenure/releases/download/v@VERSION@/tenure-v@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://github.com/tenure-rs/tenure/releases/download/v@VERSION@/tenure-v@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "tenure"
    bash_completion.install "completions/tenure.bash" => "tenure"
    zsh_completion.install "completions/_tenure"
    fish_completion.install "completions/tenure.fish"
    man1.install Dir["man/*.1"]
  end

  def post_install
    (var/"tenure").mkpath
  end

  service do
    run [opt_bin/"tenure", "serve", "--db", var/"tenure/jobs.db"]
    keep_alive true
    log_path var/"log/tenure.log"
    error_log_path var/"log/tenure.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tenure --version")
  end
end
