# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The caches are in the builder and not in a layer, so a change of the source recompiles only this crate.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --profile dist --locked --workspace --bin rolltop --bin rolltop-consume \
    && install -D -t /out target/dist/rolltop target/dist/rolltop-consume

FROM debian:bookworm-slim
RUN groupadd --system --gid 10001 rolltop \
    && useradd --system --uid 10001 --gid rolltop --no-create-home --shell /usr/sbin/nologin rolltop \
    && install -d -o rolltop -g rolltop /var/lib/rolltop
COPY --from=build /out/rolltop /out/rolltop-consume /usr/local/bin/
# A numeric id, so that an orchestrator can verify that the user is not root.
USER 10001:10001
ENV ROLLTOP_LISTEN=0.0.0.0:8080 \
    ROLLTOP_DATA_DIR=/var/lib/rolltop
VOLUME /var/lib/rolltop
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["rolltop", "healthcheck"]
ENTRYPOINT ["rolltop"]
CMD ["serve"]
