# The image of an installation: the program with its own Node on Debian's C library, and nothing else. No shell, no package manager.
# `docker build .` in a checkout makes it. The same commit gives the same files.
FROM docker.io/library/node:24-bookworm AS build
WORKDIR /src
COPY . .
# The build says in the pages which proofs are older than the sources, by the history.
RUN git config --global --add safe.directory /src \
 && npm ci --ignore-scripts --no-audit --no-fund \
 && npm run build \
 && npm run artefact -- --folder /out \
 && strip --strip-all /out/opt/farebox/bin/node

# Simulated upstreams, for trying: docker build --target sandbox .
FROM gcr.io/distroless/cc-debian12 AS sandbox
COPY --from=build /out/opt/farebox/bin/node /opt/farebox/bin/node
COPY --from=build /src/sandbox/dist /opt/sandbox
EXPOSE 8701
USER 65532:65532
ENTRYPOINT ["/opt/farebox/bin/node", "/opt/sandbox/main.js"]
CMD ["--host", "0.0.0.0", "--port", "8701"]

FROM gcr.io/distroless/cc-debian12
COPY --from=build /out/ /
# A container is reached from outside of it. What it listens on is set by roles: docs/listeners.md.
ENV FAREBOX_LISTEN_GATEWAY=0.0.0.0:8700 \
    FAREBOX_LISTEN_SITE=0.0.0.0:8702 \
    FAREBOX_LISTEN_AGENT=0.0.0.0:8703 \
    FAREBOX_LISTEN_ADMIN=0.0.0.0:8709
EXPOSE 8700 8702 8703 8709
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["/opt/farebox/bin/node", "/opt/farebox/main.js", "health"]
ENTRYPOINT ["/opt/farebox/bin/node", "/opt/farebox/main.js"]
CMD ["serve"]
