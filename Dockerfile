# syntax=docker/dockerfile:1
# The same install as `make run` (the extra `server`, pinned by constraints.txt), without an editor's conveniences.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/cairn
# First what changes seldom, so that a change of code does not install everything anew.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN mkdir -p core service migrations \
 && touch core/__init__.py service/__init__.py migrations/__init__.py \
 && /opt/cairn/bin/pip install -c constraints.txt '.[server,cluster]' \
 && /opt/cairn/bin/pip uninstall -y cairn-dp
COPY core core
COPY service service
COPY migrations migrations
RUN /opt/cairn/bin/pip install --no-deps -c constraints.txt . \
 && /opt/cairn/bin/python -m compileall -q /opt/cairn/lib \
 && rm -rf /opt/cairn/lib/python3.11/site-packages/pip /opt/cairn/bin/pip*

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin cairn \
 && install -d -o cairn -g cairn -m 700 /var/lib/cairn /var/lib/cairn/cache /var/lib/cairn/spool \
 && install -d -o cairn -g cairn -m 755 /run/cairn
COPY --from=build /opt/cairn /opt/cairn
ENV PATH=/opt/cairn/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CAIRN_HOST=0.0.0.0 \
    CAIRN_LOG_FORMAT=json \
    CAIRN_DATABASE_URL=sqlite:////var/lib/cairn/cairn.sqlite3 \
    CAIRN_CACHE_DIRECTORY=/var/lib/cairn/cache \
    CAIRN_SPOOL_DIRECTORY=/var/lib/cairn/spool
USER cairn
WORKDIR /var/lib/cairn
VOLUME /var/lib/cairn
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["cairn-server"]
CMD ["serve"]
