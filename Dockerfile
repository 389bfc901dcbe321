# The main server as an image (docs/install.md). The base has Node, and npm for the Node of the instances.
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /build
COPY . .
RUN npm ci --no-audit --no-fund \
  && npm pack --silent --pack-destination /tmp \
  && npm install --no-audit --no-fund --omit=dev --prefix /opt/crawlfleet /tmp/crawlfleet-*.tgz

FROM ${BASE}
COPY --from=build /opt/crawlfleet /opt/crawlfleet
RUN ln -s /opt/crawlfleet/node_modules/.bin/crawlfleet /usr/local/bin/crawlfleet \
  && useradd --uid 10001 --create-home --home-dir /data crawlfleet
USER crawlfleet
WORKDIR /data
ENV npm_config_cache=/data/.crawlfleet/npm
VOLUME /data
EXPOSE 8700
ENTRYPOINT ["crawlfleet"]
CMD ["schedule"]
