# syntax=docker/dockerfile:1

# Static programs. A release has built them before, and gives them in place of this stage:
# docker build --build-context build=FOLDER, with FOLDER/out as below.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends musl-tools \
    && rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /src
COPY . .
# The caches are in the builder and not in a layer, so a change of the source recompiles only this crate.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    target="$(uname -m)-unknown-linux-musl" \
    && cargo build --profile dist --locked --target "$target" --workspace --bin rolltop --bin rolltop-consume \
    && install -D -t /out/bin "target/$target/dist/rolltop" "target/$target/dist/rolltop-consume" \
    && mkdir /out/data

# Nothing but the programs: no shell, no packages to keep up to date. Time zones and roots of certificates are in them.
FROM scratch
COPY --from=build /out/bin/ /usr/local/bin/
COPY --from=build --chown=10001:10001 /out/data/ /var/lib/rolltop/
# A numeric id, so that an orchestrator can verify that the user is not root.
USER 10001:10001
ENV PATH=/usr/local/bin \
    ROLLTOP_LISTEN=0.0.0.0:8080 \
    ROLLTOP_DATA_DIR=/var/lib/rolltop
VOLUME /var/lib/rolltop
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["rolltop", "healthcheck"]
ENTRYPOINT ["rolltop"]
CMD ["serve"]
