"""A build backend that builds nothing.

pip asks a source distribution's build backend for the metadata before it hands
the archive over, and would run the package's own setup code for that. Under the
name of the default backend, setuptools, this one answers with the name and the
version that were asked for, and runs nothing of the package.
"""

import os


class NoBuild:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, directory, config_settings=None):
        name, version = os.environ["FACET_SETUP_NAME"], os.environ["FACET_SETUP_VERSION"]
        info = "%s-%s.dist-info" % (name.replace("-", "_"), version)
        os.mkdir(os.path.join(directory, info))
        with open(os.path.join(directory, info, "METADATA"), "w") as out:
            out.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
        return info


__legacy__ = NoBuild()
