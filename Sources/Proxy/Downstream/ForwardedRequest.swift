// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

/// Part of a caller's request head that is forwarded (RFC 9110 §7.6).
enum ForwardedRequest {
    /// The terms of forwarding besides the head.
    struct Terms {
        /// The policy of the configuration.
        var policy = ForwardingPolicy()
        /// True if the caller's own `Authorization` is forwarded instead of a session's.
        var keepsCredentials = false
        /// The caller's own `Authorization` for the upstream.
        var ownAuthorization = OwnAuthorization.none
        /// The field with the caller's token for this proxy, which is not forwarded.
        var tokenField: CallerField?
        /// True if the chunks of an `aws-chunked` body are taken off.
        var decodesChunks = false
        /// Lines with addresses of this listener, as the upstream gets them.
        var mappedLines: [ForwardMapping.Line] = []
        /// Caller's socket, from which the kernel determines the address; read only if the upstream needs it.
        var socket: Int32 = -1
    }

    /// Writes the forwarded fields of `head` (in `bytes`), and the fields that a proxy adds.
    ///
    /// Hop-by-hop fields and all fields that `Connection` names are removed first, so that a caller cannot have an injected
    /// credential removed by naming it: fields of `sessions` are added afterwards. Their cookies and the caller's become one
    /// field.
    static func write(
        _ head: RequestHead, in bytes: Span<UInt8>, authority: [UInt8], terms: Terms = Terms(),
        overriddenBy sessions: SessionFields, cookies: RequestCookies? = nil, to fields: FieldSink
    ) {
        let policy = terms.policy
        let passesHost =
            switch policy.host {
            case .pass: true
            case .upstream: false
            }
        if passesHost, let host = passedHost(head) {
            fields.append(name: "Host", value: bytes.extracting(host.bounds))
        } else {
            fields.append(name: "Host", value: authority.span)
        }
        var callersCookies: [[UInt8]] = []
        // The unchanged lines that are not written yet.
        var run = FieldRun()
        for index in head.fields.indices {
            let line = head.fields[index]
            if let field = terms.tokenField, field.matches(line, in: bytes) { continue }
            if line.isHopByHop {
                // Announces fields after the body (RFC 9110 §6.6.2).
                guard line.kind == .trailer, !line.isNominated, head.body == .chunked else { continue }
            }
            switch line.kind {
            case .host, .contentLength, .expect:
                // Replaced: by the upstream's authority (RFC 9110 §7.2), the new framing, the proxy's own response to
                // Expect.
                continue
            case .authorization where terms.keepsCredentials:
                fields.append(run.taken(), of: bytes)
                fields.append(name: "Authorization", value: bytes.extracting(line.value.bounds))
                continue
            case .forwarded, .xForwardedFor, .xForwardedHost, .xForwardedProto:
                if CallerFields.owns(line.kind, as: policy.caller) { continue }
            case .maxForwards where head.method == .options:
                guard let left = MaxForwards.reduced(line.value, in: bytes) else { continue }
                fields.append(run.taken(), of: bytes)
                fields.append(name: "Max-Forwards", value: "\(left)")
                continue
            default: break
            }
            if sessions.override(line.kind, named: bytes.extracting(line.name.bounds)) { continue }
            if line.kind == .other, isOurs(line.imitated(in: bytes), policy: policy, overriddenBy: sessions) {
                continue
            }
            if terms.decodesChunks {
                if line.kind == .contentEncoding {
                    let codings = AWSChunkFields.withoutChunks(bytes.copy(line.value))
                    fields.append(run.taken(), of: bytes)
                    if !codings.isEmpty { fields.append(name: "Content-Encoding", value: codings.span) }
                    continue
                }
                if AWSChunkFields.isRemoved(bytes.extracting(line.name.bounds)) { continue }
            }
            if !terms.mappedLines.isEmpty, let mapped = terms.mappedLines.first(where: { $0.index == index }) {
                fields.append(run.taken(), of: bytes)
                fields.append(name: bytes.extracting(line.name.bounds), value: mapped.value.span)
                continue
            }
            let value = bytes.extracting(line.value.bounds)
            if line.kind == .cookie, cookies != nil || hasSeveralCookies(head) {
                callersCookies.append(LocalCookie.restored(value) ?? bytes.copy(line.value))
                continue
            }
            if line.kind == .acceptEncoding, sessions.limitsCodings {
                fields.append(run.taken(), of: bytes)
                fields.append(name: "Accept-Encoding", value: ReadableCodings.among(bytes.text(line.value)))
                continue
            }
            if line.kind == .cookie, let restored = LocalCookie.restored(value) {
                fields.append(run.taken(), of: bytes)
                fields.append(name: bytes.extracting(line.name.bounds), value: restored.span)
                continue
            }
            if line.isPlain(in: bytes) {
                if !run.add(line) { fields.append(run.taken(by: line), of: bytes) }
            } else {
                fields.append(run.taken(), of: bytes)
                fields.append(name: bytes.extracting(line.name.bounds), value: value)
            }
        }
        fields.append(run, of: bytes)
        if let cookies {
            cookies.write(mergedWith: callersCookies, to: fields)
        } else if !callersCookies.isEmpty {
            fields.append(name: "Cookie", value: RequestCookies.joined(callersCookies).span)
        }
        switch policy.caller {
        case .none: break
        case .forwarded, .xForwarded:
            CallerFields.write(
                head, in: bytes, from: SocketName.peer(of: terms.socket), as: policy.caller, overriddenBy: sessions,
                to: fields)
        }
        // After the caller's lines: the lines of a list are one list, in order (RFC 9110 §5.3, §7.6.3).
        fields.append(lines: head.version == .http10 ? "Via: 1.0 countersign\r\n" : "Via: 1.1 countersign\r\n")
        // RFC 9110 §10.1.4; trailers cannot be sent to a caller with HTTP/1.0.
        if head.acceptsTrailers, head.version == .http11 {
            fields.append(lines: "TE: trailers\r\nConnection: TE\r\n")
        }
    }

    /// Returns true if a CGI program would read a field as the one that the proxy adds (`kind`). Such a field is left
    /// out.
    private static func isOurs(_ kind: FieldName, policy: ForwardingPolicy, overriddenBy sessions: SessionFields)
        -> Bool
    {
        switch kind {
        case .other: false
        case .contentLength, .expect, .host, .maxForwards: true
        case .acceptEncoding: sessions.limitsCodings
        default: kind.isHopByHop || CallerFields.owns(kind, as: policy.caller)
        }
    }

    /// Returns true if cookies are in several lines, which only HTTP/2 allows (RFC 9113 §8.2.3). Many servers of
    /// HTTP/1.1 join such lines with a comma and then cannot parse them.
    private static func hasSeveralCookies(_ head: RequestHead) -> Bool {
        head.fields.lazy.filter { $0.kind == .cookie && !$0.isNominated }.dropFirst().first != nil
    }

    /// Returns the requested host: from an absolute target, else from `Host` (RFC 9112 §3.2.2), unless `Connection` names `Host`.
    private static func passedHost(_ head: RequestHead) -> ByteRange? {
        head.target.authority ?? head.first(.host).flatMap { $0.isNominated ? nil : $0.value }
    }
}
