"""spack dev-build --source-path . bursar@main"""

import os

from spack.package import *


class Bursar(Package):
    """How much memory a program needs, what each further byte buys, and what guessing would have cost."""

    license("MIT OR Apache-2.0")

    version("main")

    depends_on("c", type="build")
    depends_on("rust@1.85:", type="build")
    depends_on("llvm+clang", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("elfutils")
    depends_on("zlib-api")

    conflicts("platform=darwin", msg="bursar measures Linux")

    def install(self, spec, prefix):
        cargo = Executable("cargo")
        cargo("build", "--release", "--locked", "-p", "bursar")
        binary = os.path.join("target", "release", "bursar")
        built = os.path.join("target", "built")
        Executable("scripts/pages")(binary, built)
        Executable("scripts/install")(binary, built, extra_env={"DESTDIR": "", "PREFIX": str(prefix)})
