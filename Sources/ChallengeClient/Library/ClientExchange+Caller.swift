// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire

// What the exchange asks for and brings back.
extension ClientExchange: ExchangeCaller {
    /// Fields that the connection is ours to speak of with, and the framing (RFC 9110 section 7.6.1).
    private static let own: Set<HTTPField.Name> = [
        .connection, .contentLength, .expect, .transferEncoding, .upgrade, .te, .trailer,
    ]

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        fields.append(name: "Host", value: request.origin.authority.utf8.span)
        var lines: [[UInt8]] = []
        request.fields.forEachLine { field, value in
            if Self.own.contains(field) { return }
            let name = Array(field.canonicalName.utf8)
            let kind = FieldName(name.span, ByteRange(start: 0, end: name.count))
            if kind == .host || kind.isHopByHop { return }
            // The program's own goes, and no session's.
            if field == .authorization { return fields.append(name: "Authorization", value: value.utf8.span) }
            if sessions.override(kind, named: name.span) { return }
            if field == .cookie, cookies != nil { return lines.append(Array(value.utf8)) }
            let isLimited = field == .acceptEncoding && sessions.limitsCodings
            let sent = isLimited ? ReadableCodings.among(value) : value
            fields.append(name: field.rawName.utf8.span, value: sent.utf8.span)
        }
        cookies?.write(mergedWith: lines, to: fields)
        if let upgrade = request.upgrade {
            fields.append(name: "Connection", value: "Upgrade")
            fields.append(name: "Upgrade", value: upgrade.utf8.span)
        }
    }

    func exchangeDelivers(headOf transfer: Transfer) { deliver(head(of: transfer)) }

    private func head(of transfer: Transfer) -> HTTPResponse {
        let held = heldCookies
        return transfer.head.withSpan { bytes in
            var response = HTTPResponse(status: .init(code: transfer.answer.status))
            for line in transfer.answer.fields where !line.isHopByHop {
                if held.contains(line) { continue }
                guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
                response.headerFields.append(HTTPField(name: name, value: bytes.text(line.value)))
            }
            return response
        }
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        guard pipe.hasRoom else { return }
        pipe.put(transfer.body.copy())
        transfer.body.removeAll(keepingCapacity: Transfer.bodyCapacity)
    }

    func exchangeEnded() { finish() }

    /// The response is whole, and whoever still sends its request may go on with that.
    func exchangeHasAll() { pipe.finish(.success(())) }

    func exchangeFailed(_ error: ExchangeError) { fail(ClientError(error)) }

    func exchangeBroke(_ error: ExchangeError) { fail(ClientError(error)) }

    func exchangeWantsBody() { wantsBody() }

    /// Only to what was asked for (RFC 9110 section 15.2.2).
    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        let offered = transfer.head.withSpan { bytes in
            transfer.answer.fields.filter { $0.kind == .upgrade }.map { bytes.text($0.value).lowercased() }
        }
        guard let wanted = request.upgrade?.lowercased(), offered == [wanted] else {
            throw WireError(upstream: .switchInvalid)
        }
        switched(to: connection, head: head(of: transfer))
    }

    /// Nobody is told.
    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {}

    /// Nobody is told.
    func exchangeDelivers(trailersOf transfer: Transfer) {}

    /// The program itself.
    var callerUser: UInt32? { nil }
}
