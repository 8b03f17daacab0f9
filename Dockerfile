# The server with its dependencies, in two stages: the first installs them, the second has no tools to install more.
# A release names the digest of its base: `make image BASE_DIGEST=sha256:...`; without one the tag decides.
ARG BASE_DIGEST=
FROM python:3.11-slim${BASE_DIGEST:+@$BASE_DIGEST} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# Without pip: that of the base image installs into it.
RUN python -m venv --without-pip /opt/cairn
# Dependencies first: they change seldom, and a change of code does not install them again.
COPY deploy/requirements.txt deploy/requirements.txt
RUN python -m pip --python /opt/cairn/bin/python install --no-compile --no-deps --require-hashes --only-binary :all: \
    -r deploy/requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY service service
COPY migrations migrations
COPY kernels kernels
RUN python -m pip --python /opt/cairn/bin/python install --no-compile --no-deps --no-build-isolation .
# Compiled kernels, where a compiler can be had: without them the same results take longer.
RUN { command -v cc || { apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev; }; } \
 && python -m pip --python /opt/cairn/bin/python install --no-compile --no-deps --no-build-isolation ./kernels \
 || echo "The kernels were not compiled: numpy computes."
RUN python -m pip --python /opt/cairn/bin/python uninstall --yes setuptools
# What nobody uses here: libraries' own tests, Arrow's remote procedure calls and C++ headers.
RUN find /opt/cairn/lib -type d -name tests -prune -exec rm -rf {} + \
 && find /opt/cairn/lib -path '*/pyarrow/*' \( -name '*flight*' -o -name include \) -prune -exec rm -rf {} + \
 && /opt/cairn/bin/python -m compileall -q -j 0 /opt/cairn/lib
# A package that lacks a file should fail here, and not on somebody's server.
RUN CAIRN_DATABASE_URL=sqlite:////tmp/build.sqlite3 /opt/cairn/bin/cairn-server migrate \
 && /opt/cairn/bin/python -I -c "import distributed, service.app, service.workers.worker"

FROM python:3.11-slim${BASE_DIGEST:+@$BASE_DIGEST}
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin cairn \
 && install -d -o cairn -g cairn -m 700 /var/lib/cairn /var/lib/cairn/cache /var/lib/cairn/spool \
        /var/lib/cairn/ledgers /run/cairn-cluster \
 && install -d -o cairn -g cairn -m 755 /run/cairn
COPY --from=build /opt/cairn /opt/cairn
ENV PATH=/opt/cairn/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CAIRN_HOST=0.0.0.0 \
    CAIRN_LOG_FORMAT=json \
    CAIRN_DATABASE_URL=sqlite:////var/lib/cairn/cairn.sqlite3 \
    CAIRN_CACHE_DIRECTORY=/var/lib/cairn/cache \
    CAIRN_SPOOL_DIRECTORY=/var/lib/cairn/spool \
    CAIRN_HEALTH_DIRECTORY=/tmp/cairn-health
# By number: Kubernetes' runAsNonRoot cannot tell that a name is not root's.
USER 10001:10001
# No VOLUME: Docker would make a nameless one for every container. Mount a named one here to keep the database.
WORKDIR /var/lib/cairn
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["cairn-server", "health"]
ENTRYPOINT ["cairn-server"]
CMD ["serve"]
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Cairn" \
      org.opencontainers.image.description="Differentially private clustering for a trusted data curator" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="python:3.11-slim" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
