# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The configurations of HAProxy, Envoy and Caddy: one worker, the token in place of the caller's, connections kept, no log."""

import json

from configurations import AUTHORIZATION, MOST_CONNECTIONS, SECRET, TLS_NAME


def haproxy(ports, upstreams, authority):
    sections = ""
    for kind, port in ports.items():
        tls = {
            "tls": f"ssl verify required ca-file {authority} verifyhost {TLS_NAME} sni str({TLS_NAME}) alpn http/1.1",
            "h2": f"ssl verify required ca-file {authority} verifyhost {TLS_NAME} sni str({TLS_NAME}) alpn h2",
        }.get(kind, "")
        sections += f"""
frontend {kind}
    bind 127.0.0.1:{port} backlog 8192
    http-request set-header Authorization "{AUTHORIZATION}"
    default_backend {kind}
backend {kind}
    http-reuse always
    server upstream 127.0.0.1:{upstreams[kind]} pool-max-conn 1024 pool-purge-delay 1h {tls}
"""
    return f"""
global
    nbthread 1
    maxconn 7000
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout http-keep-alive 1h
{sections}"""


def envoy(ports, upstreams, authority):
    """In JSON, which Envoy takes for YAML."""
    return json.dumps({
        "static_resources": {
            "secrets": [{"name": "token", "generic_secret": {"secret": {"inline_string": AUTHORIZATION}}}],
            "listeners": [_listener(kind, port) for kind, port in ports.items()],
            "clusters": [_cluster(kind, upstreams[kind], authority) for kind in ports],
        },
    }, indent=1)


# The key that Envoy signs with; it asks no server for another.
SIGNING_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "r", "AWS_EC2_METADATA_DISABLED": "true"}


def signing_envoy(port, upstream):
    """Envoy that signs requests for S3, in place of a token."""
    listener = _listener("signed", port, signing=True)
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [_cluster("signed", upstream, None)]}}, indent=1)


def _typed(name, **fields):
    return {"@type": f"type.googleapis.com/{name}", **fields}


def _listener(kind, port, signing=False):
    injector = _typed(
        "envoy.extensions.filters.http.credential_injector.v3.CredentialInjector", overwrite=True,
        credential={
            "name": "envoy.http.injected_credentials.generic",
            "typed_config": _typed(
                "envoy.extensions.http.injected_credentials.generic.v3.Generic", credential={"name": "token"}),
        })
    signer = _typed(
        "envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigning", service_name="s3", region="r")
    manager = _typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", stat_prefix=kind,
        route_config={"virtual_hosts": [{
            "name": kind, "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": kind, "timeout": "0s"}}],
        }]},
        http_filters=[
            {"name": "envoy.filters.http.aws_request_signing", "typed_config": signer} if signing else
            {"name": "envoy.filters.http.credential_injector", "typed_config": injector},
            {"name": "envoy.filters.http.router",
             "typed_config": _typed("envoy.extensions.filters.http.router.v3.Router")},
        ])
    return {
        "name": kind, "tcp_backlog_size": 8192, "address": _address(port),
        "filter_chains": [{
            "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}],
    }


def _cluster(kind, port, authority):
    protocol = "http2_protocol_options" if kind == "h2" else "http_protocol_options"
    cluster = {
        "name": kind, "type": "STATIC", "connect_timeout": "5s",
        "load_assignment": {
            "cluster_name": kind, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}]},
        "circuit_breakers": {"thresholds": [{
            name: MOST_CONNECTIONS for name in ("max_connections", "max_pending_requests", "max_requests")}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": _typed(
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions", explicit_http_config={protocol: {}})},
    }
    if kind in ("tls", "h2"):
        cluster["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": _typed(
                "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", sni=TLS_NAME,
                common_tls_context={
                    "alpn_protocols": ["h2" if kind == "h2" else "http/1.1"],
                    "validation_context": {
                        "trusted_ca": {"filename": authority},
                        "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": TLS_NAME}}],
                    },
                }),
        }
    return cluster


def _address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def caddy(ports, upstreams, authority):
    sites = ""
    for kind, port in ports.items():
        tls = f"""
            tls
            tls_trusted_ca_certs {authority}
            tls_server_name {TLS_NAME}""" if kind in ("tls", "h2") else ""
        sites += f"""
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    reverse_proxy 127.0.0.1:{upstreams[kind]} {{
        header_up Authorization "{AUTHORIZATION}"
        transport http {{
            versions {"2" if kind == "h2" else "1.1"}
            compression off
            keepalive 1h
            keepalive_idle_conns 1024
            keepalive_idle_conns_per_host 1024 {tls}
        }}
    }}
}}
"""
    return f"""
{{
    admin off
    auto_https off
    log {{
        output discard
    }}
}}
{sites}"""
