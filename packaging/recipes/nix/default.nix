# nix-build packaging/recipes/nix
{ pkgs ? import <nixpkgs> { } }:

let
  manifest = builtins.fromTOML (builtins.readFile ../../../Cargo.toml);
in
pkgs.rustPlatform.buildRustPackage {
  pname = "bursar";
  version = manifest.workspace.package.version;
  src = pkgs.lib.cleanSource ../../..;
  cargoLock.lockFile = ../../../Cargo.lock;
  cargoBuildFlags = [ "-p" "bursar" ];

  nativeBuildInputs = [ pkgs.pkg-config pkgs.llvmPackages.clang-unwrapped ];
  # The stub that a command is started by is a static program.
  buildInputs = [ pkgs.elfutils pkgs.zlib pkgs.glibc.static ];

  # They need cgroups, tracepoints and other programs.
  doCheck = false;
  installPhase = ''
    binary=$(find target -path '*/release/bursar' -type f | head -n 1)
    patchShebangs scripts
    scripts/pages "$binary" built
    DESTDIR= PREFIX=$out scripts/install "$binary" built
  '';

  meta = {
    description = "How much memory a program needs, what each further byte buys, and what guessing would have cost";
    license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
    platforms = [ "x86_64-linux" ];
    mainProgram = "bursar";
  };
}
