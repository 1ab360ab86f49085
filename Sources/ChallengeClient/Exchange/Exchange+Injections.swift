// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

// The values of sessions in the request's target and body, and out of the answer (`inject`).
extension Exchange {
    /// The result of putting values into a request.
    enum Injection {
        /// The request can be sent, its body with this framing.
        case done(BodyFraming)
        /// The body is read first.
        case waiting
        /// The request has no place for the values.
        case refused(ExchangeError)
    }

    /// Writes the values of sessions into target and body.
    func inject(_ values: RequestInjections, of fields: SessionFields, at client: UpstreamClient) -> Injection {
        if let fault = target.withSpan({ values.fault(ofTarget: $0) }) { return .refused(ExchangeError(fault)) }
        injected.setTarget(target, by: values, base: client.plan.basePath.count)
        guard values.changesBodies, request.hasBody else { return .done(request.framing) }
        if let length = body.length(changedBy: values) { return .done(framing(UInt64(clamping: length))) }
        do throws(InjectionFault) {
            let form = try bodyForm(fields)
            guard let original = body.original else {
                if let length = request.length, length > UInt64(RequestInjections.bodyLimit) { throw .bodyTooLong }
                guard body.beginChange() else { throw .bodyTooLong }
                return .waiting
            }
            // An empty body is left alone.
            guard !original.isEmpty else { return .done(framing(0)) }
            let changed = try values.changed(original, form: form)
            body.change(to: changed, by: values)
            return .done(framing(UInt64(clamping: changed.count)))
        } catch {
            return .refused(ExchangeError(error))
        }
    }

    /// Returns the framing of a changed body: its length, unless fields follow it (RFC 9112 §7.1.2).
    private func framing(_ length: UInt64) -> BodyFraming {
        request.framing == .chunked && body.hasTrailers ? .chunked : .length(length)
    }

    /// Returns the form of the body, by the fields that the caller sends.
    private func bodyForm(_ fields: SessionFields) throws(InjectionFault) -> BodyFormat {
        let head = runtime.head
        head.begin(request.methodName.utf8.span, target)
        defer { head.reset() }
        caller?.writeFields(into: head, overriddenBy: fields, cookies: nil)
        return try BodyFormat.of(head)
    }

    // MARK: Answers

    /// Removes the values from the answer's head. Returns false if the exchange has ended.
    func cleanHead(of transfer: Transfer, by values: RequestInjections, at client: UpstreamClient) -> Bool {
        let isPage = values.cleansPages && transfer.isCleanablePage
        injected.beginPage(isPage ? values.cleaner.bodyCleaner() : nil)
        let isValid = transfer.changeValues(isReasonRemoved: { values.cleaner.finds(in: $0) }) { kind, name, value in
            // The digest would be wrong for a body in which something is replaced.
            if isPage, kind == .other, name.isDigestOfBody { return .removed }
            return values.cleaner.cleaned(value, kind.cleaned(named: name), base: client.plan.basePath).map {
                .value($0)
            }
                ?? .unchanged
        }
        if !isValid, let fault = transfer.fault { abort(ExchangeError(fault, upstream: client.plan)) }
        return isValid
    }

    /// Passes on the bytes of a page that are still held back at its end. Returns false if the caller has no room for
    /// them yet.
    func deliverRest(of transfer: Transfer) -> Bool {
        guard injected.isHoldingBody, machine.state.isDelivering else { return true }
        injected.cleanBody(of: transfer, isEnd: true)
        caller?.exchangeDelivers(bodyOf: transfer)
        injected.recordDelivery(of: transfer)
        return transfer.body.isEmpty
    }

    /// Returns true if fields after the answer's body hold a value; then none of these fields is passed on.
    func trailersHoldValues(_ transfer: Transfer) -> Bool {
        guard let values = sessions.examinedFields?.injections else { return false }
        var isFound = false
        transfer.forEachTrailer { _, value in isFound = isFound || values.cleaner.finds(in: value) }
        return isFound
    }
}

extension ExchangeError {
    /// Creates the error for a request that has no place for a value.
    init(_ fault: InjectionFault) {
        self.init(fault.kind == .bodyTooLong ? .bodyNotReplayable : .requestUnfit, detail: fault.detail)
    }
}

extension Transfer {
    /// True if the answer's body may be a page: text or JSON without a content coding.
    fileprivate var isCleanablePage: Bool {
        head.withSpan { bytes in
            for line in answer.fields where line.kind == .contentEncoding {
                guard bytes.matches(line.value, ignoringCase: "identity") else { return false }
            }
            guard let type = answer.first(.contentType) else { return false }
            let words = bytes.text(type.value).lowercased().split(separator: ";")
            guard let name = words.first?.filter({ $0 != " " && $0 != "\t" }) else { return false }
            return name.hasPrefix("text/") || name == "application/json" || name.hasSuffix("+json")
        }
    }
}

extension FieldName {
    fileprivate func cleaned(named name: Span<UInt8>) -> ResponseCleaner.Kind {
        switch self {
        case .location, .contentLocation: .address
        case .refresh: .refresh
        case .setCookie: .cookie
        case .other where name.isLink: .links
        default: .other
        }
    }
}

extension Span<UInt8> {
    fileprivate var isLink: Bool { matches(ByteRange(start: 0, end: count), ignoringCase: "link") }

    /// True if this is the name of a field with a digest of the body (RFC 9530, RFC 3230, RFC 1864).
    fileprivate var isDigestOfBody: Bool {
        let all = ByteRange(start: 0, end: count)
        return matches(all, ignoringCase: "content-digest") || matches(all, ignoringCase: "repr-digest")
            || matches(all, ignoringCase: "digest") || matches(all, ignoringCase: "content-md5")
    }
}
