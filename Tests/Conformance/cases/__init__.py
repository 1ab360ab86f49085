# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""All cases, by family."""

from . import (
    chunks, codings, connections, early, expectations, fields, forwarding, hop_by_hop, hosts, interim, lengths, local, methods,
    pipelining, request_lines, response_cuts, response_fields, response_framing, response_heads, reuse, rewriting, targets, trailers,
    upgrades)

MODULES = (
    lengths, codings, chunks, trailers, early, fields, request_lines, methods, targets, hosts, hop_by_hop, forwarding, expectations,
    interim, upgrades, response_cuts, response_fields, response_framing, response_heads, reuse, connections, pipelining, rewriting,
    local)

ALL = [case for module in MODULES for case in module.cases()]

_ids = [case.id for case in ALL]
_twice = {name for name in _ids if _ids.count(name) > 1}
if _twice:
    raise ValueError(f"ids given twice: {sorted(_twice)}")
