# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""All cases, by family."""

from . import (
    chunks, codings, connections, early, expectations, fields, forwarding, openings, hop_by_hop, hop_by_hop_responses,
    hosts,
    interim, lengths, local, methods, pipelining, request_lines, response_cuts, response_fields, response_framing,
    response_heads,
    response_limits, reuse, rewriting, targets, trailers, upgrades, upgrades_odd)

MODULES = (
    lengths, codings, chunks, trailers, early, fields, openings, request_lines, methods, targets, hosts, hop_by_hop,
    hop_by_hop_responses, forwarding, expectations, interim, upgrades, upgrades_odd, response_cuts, response_fields,
    response_framing,
    response_heads,
    response_limits, reuse, connections, pipelining, rewriting, local)

ALL = [case for module in MODULES for case in module.cases()]

_ids = [case.id for case in ALL]
_twice = {name for name in _ids if _ids.count(name) > 1}
if _twice:
    raise ValueError(f"ids given twice: {sorted(_twice)}")
