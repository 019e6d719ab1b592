# HOMEBREW_DEVELOPER=1 brew install --HEAD --formula packaging/recipes/homebrew/bursar.rb
class Bursar < Formula
  desc "How much memory a program needs, and what each further byte buys"
  license any_of: ["MIT", "Apache-2.0"]
  head "file://#{File.expand_path("../../..", __dir__)}", using: :git

  depends_on "llvm" => :build
  depends_on "pkgconf" => :build
  depends_on "rust" => :build
  depends_on "elfutils"
  depends_on :linux
  depends_on "zlib"

  def install
    system "cargo", "build", "--release", "--locked", "-p", "bursar"
    system "scripts/pages", "target/release/bursar", "target/built"
    ENV["DESTDIR"] = ""
    ENV["PREFIX"] = prefix.to_s
    system "scripts/install", "target/release/bursar", "target/built"
  end

  test do
    assert_match "exit 0", shell_output("#{bin}/bursar run -- true 2>&1")
  end
end
