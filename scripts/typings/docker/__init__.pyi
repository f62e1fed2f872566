# The part of the Docker client that natsstream and testcontainers' types use: the package ships no
# types. Checked by the tests of containers, which run every call here.
from docker.client import DockerClient as DockerClient
