// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

/// What of a caller's request head goes upstream (RFC 9110 §7.6).
enum ForwardedRequest {
    /// Writes the fields of `head` (in `bytes`) that are forwarded, and those that a gateway adds.
    ///
    /// Hop-by-hop fields and all that `Connection` names go first, whatever they are, so that a caller cannot have an
    /// injected credential removed by naming it: what `sessions` inject is added afterwards.
    static func write(
        _ head: RequestHead, in bytes: Span<UInt8>, authority: [UInt8], overriddenBy sessions: SessionFields,
        to fields: HeaderList
    ) throws(CurlError) {
        try fields.append(name: "Host", value: authority.span)
        var hasAccept = false
        for line in head.fields {
            if line.isHopByHop { continue }
            switch line.kind {
            case .host, .contentLength, .expect:
                // Ours: the upstream's authority (RFC 9110 §7.2), libcurl's framing, our own answer to Expect.
                continue
            case .accept: hasAccept = true
            default: break
            }
            if sessions.override(line.kind, named: bytes.extracting(line.name.bounds)) { continue }
            if line.kind == .maxForwards, head.method == .options,
                let left = MaxForwards.reduced(line.value, in: bytes)
            {
                try fields.append(name: "Max-Forwards", value: "\(left)")
                continue
            }
            let value = bytes.extracting(line.value.bounds)
            try fields.append(name: bytes.extracting(line.name.bounds), value: value)
        }
        // Behind those that are there: the lines of a list are one list, in their order (RFC 9110 §5.3, §7.6.3).
        try fields.append(name: "Via", value: head.version == .http10 ? "1.0 countersign" : "1.1 countersign")
        // libcurl would add `Accept: */*`.
        if !hasAccept { fields.suppress("Accept") }
    }
}
