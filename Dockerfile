# SPDX-License-Identifier: Apache-2.0
# Build:  docker build -t numaprobe .                                     (on Debian 12)
#         docker build -t numaprobe --build-arg DEBIAN=trixie-slim .      (on Debian 13)
# Run:    docker run -d --name numaprobe --network host --read-only --tmpfs /tmp --tmpfs /run/numaprobe:uid=780,mode=0711 \
#             --cap-drop ALL --cap-add SYS_NICE --security-opt no-new-privileges --shm-size 1g \
#             -v numaprobe:/var/lib/numaprobe numaprobe
# --network host: it listens on the machine's loopback. To share only the Unix socket, use
# -v /run/numaprobe:/run/numaprobe instead.
# --cap-add SYS_NICE: without it, Docker's seccomp filter forbids mbind and move_pages, which place and verify memory.
# Then CPUs are bound, runs note that memory is not, and another node's memory is not measured.
# --shm-size: Open MPI needs 4 MiB of shared memory per rank. Docker's default of 64 MiB is enough for 15 ranks.
# A --cpuset-cpus or a memory limit of the container is respected.
#
# The collector of a fleet is another image:
# Build:  docker build -t numaprobe-fleet --target fleet .
# Run:    docker run -d --name numaprobe-fleet --network host --read-only --tmpfs /tmp \
#             --tmpfs /run/numaprobe-fleet:uid=781,mode=0711 --cap-drop ALL --security-opt no-new-privileges \
#             -v numaprobe-fleet:/var/lib/numaprobe-fleet numaprobe-fleet --nodes='node[001-100]'
ARG DEBIAN=bookworm-slim

FROM docker.io/library/debian:${DEBIAN} AS build
WORKDIR /src
COPY tools/packages.sh tools/
RUN . tools/packages.sh && mkdir /log && packages_install /log/apt.log build fleet && rm -rf /var/lib/apt/lists/*
COPY . .
RUN meson setup /build --prefix=/usr --buildtype=release -Dtests=false && \
    meson compile -C /build && \
    DESTDIR=/image meson install -C /build --no-rebuild && \
    install -D /image/usr/sbin/numaprobe-fleetd /fleet/usr/sbin/numaprobe-fleetd && \
    rm /image/usr/sbin/numaprobe-fleetd

FROM docker.io/library/debian:${DEBIAN} AS fleet
LABEL org.opencontainers.image.title="numaprobe-fleet" \
      org.opencontainers.image.description="Collects the measurements of many NUMA nodes, and judges them" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY tools/packages.sh /usr/share/numaprobe/
RUN . /usr/share/numaprobe/packages.sh && packages_install /tmp/apt.log image image-fleet && \
    rm -rf /var/lib/apt/lists/* /tmp/apt.log && \
    useradd --system --uid 781 --home-dir /var/lib/numaprobe-fleet --shell /usr/sbin/nologin numaprobe-fleet && \
    install -d -o numaprobe-fleet -g numaprobe-fleet -m 0750 /var/lib/numaprobe-fleet && \
    install -d -o numaprobe-fleet -g numaprobe-fleet -m 0711 /run/numaprobe-fleet
COPY --from=build /fleet/ /
USER numaprobe-fleet
ENV STATE_DIRECTORY=/var/lib/numaprobe-fleet RUNTIME_DIRECTORY=/run/numaprobe-fleet
VOLUME /var/lib/numaprobe-fleet
EXPOSE 7790
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 CMD ["curl", "-fsS", "http://127.0.0.1:7790/healthz"]
ENTRYPOINT ["numaprobe-fleetd"]

FROM docker.io/library/debian:${DEBIAN}
LABEL org.opencontainers.image.title="numaprobe" \
      org.opencontainers.image.description="Measures the memory of a NUMA node on request, and stores the results" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY tools/packages.sh /usr/share/numaprobe/
RUN . /usr/share/numaprobe/packages.sh && packages_install /tmp/apt.log run image image-node && \
    rm -rf /var/lib/apt/lists/* /tmp/apt.log && \
    useradd --system --uid 780 --home-dir /var/lib/numaprobe --shell /usr/sbin/nologin numaprobe && \
    install -d -o numaprobe -g numaprobe -m 0750 /var/lib/numaprobe && \
    install -d -o numaprobe -g numaprobe -m 0711 /run/numaprobe
COPY --from=build /image/ /
USER numaprobe
ENV STATE_DIRECTORY=/var/lib/numaprobe RUNTIME_DIRECTORY=/run/numaprobe NUMAPROBE_URL=unix:/run/numaprobe/numaprobed.sock
VOLUME /var/lib/numaprobe
EXPOSE 7780
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 CMD ["numaprobe", "node"]
ENTRYPOINT ["numaprobed"]
CMD ["--listen=127.0.0.1:7780"]
