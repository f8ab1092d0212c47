# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The caches belong to the builder, not to a layer: a changed source recompiles this crate only.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --release --locked --bin rolltop \
    && install -D target/release/rolltop /out/rolltop

FROM debian:bookworm-slim
RUN groupadd --system --gid 10001 rolltop \
    && useradd --system --uid 10001 --gid rolltop --no-create-home --shell /usr/sbin/nologin rolltop \
    && install -d -o rolltop -g rolltop /var/lib/rolltop
COPY --from=build /out/rolltop /usr/local/bin/rolltop
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
ENV ROLLTOP_LISTEN=0.0.0.0:8080 \
    ROLLTOP_DATA_DIR=/var/lib/rolltop
VOLUME /var/lib/rolltop
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["rolltop", "healthcheck"]
ENTRYPOINT ["rolltop"]
CMD ["serve"]
