// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import HTTPTypes
public import HTTPWire
internal import Secrets

/// The fields injected by the sessions of a route, rendered once for all requests.
package final class SessionFields {
    /// No fields.
    @safe package nonisolated(unsafe) static let none = SessionFields([])

    /// True if the upstream is offered only content codings that can be decoded here.
    package let limitsCodings: Bool
    /// Signers that do not belong to a group.
    private let signers: [any RequestSigner]
    private let groups: [any SignerGroupView]
    private let views: [any SignerView]
    /// The kinds of response fields that the signers learn from; `nil` for all.
    let learnsFrom: [FieldName]?
    let cookies: [SessionCookieView]
    /// Injected `Cookie` fields, to be merged into one line with others (RFC 6265 §5.4).
    let cookieFields: [Secret]
    /// The credential by which libcurl authenticates the request's connection.
    let connection: ConnectionCredential?
    /// The group of the sessions that servers may bind the request's connection to; `nil` without such a session.
    let group: ConnectionGroup?
    /// The values for the target and the body; `nil` for nearly all routes.
    let injections: RequestInjections?
    private let fields: [(name: [UInt8], isAuthorization: Bool, value: Secret)]
    private let kinds: [FieldName]
    private let otherNames: [[UInt8]]

    convenience init(_ fields: [InjectedField]) { self.init(fields, signers: [], cookies: []) }

    /// Creates the fields of sessions. `userAgent`: the one that the request is tried under.
    convenience init(
        _ sessions: [Session], userAgent: String? = nil, group: ConnectionGroup? = nil, limitsCodings: Bool
    ) {
        self.init(
            Self.fields(of: sessions, userAgent), signers: sessions.compactMap(\.signer),
            cookies: sessions.compactMap(\.cookies),
            connection: sessions.lazy.compactMap(\.connection).first, group: group,
            injections: .merged(sessions.compactMap(\.injections)), limitsCodings: limitsCodings)
    }

    /// Returns the fields of sessions, with one `User-Agent` at most: that of cookies, which a server may bind to it.
    private static func fields(of sessions: [Session], _ userAgent: String?) -> [InjectedField] {
        let fields = sessions.flatMap(\.fields)
        let bound = sessions.lazy.filter { $0.cookies != nil }.flatMap(\.fields).first { $0.name == .userAgent }
        guard let field = userAgent.map({ InjectedField(name: .userAgent, value: Secret($0)) }) ?? bound else {
            return fields
        }
        return fields.filter { $0.name != .userAgent } + [field]
    }

    private init(
        _ fields: [InjectedField], signers: [any RequestSigner], cookies: [SessionCookies],
        connection: ConnectionCredential? = nil, group: ConnectionGroup? = nil, injections: RequestInjections? = nil,
        limitsCodings: Bool = false
    ) {
        self.connection = connection
        self.group = group
        self.injections = injections
        let single = signers.filter { $0.group == nil }
        self.signers = single
        groups = Self.groups(of: signers)
        views = single.map { $0.makeView() } + groups.map { $0 as any SignerView }
        let learned = signers.map(\.learnsFrom)
        learnsFrom =
            learned.contains { $0 == nil }
            ? nil
            : Set(learned.flatMap { $0 ?? [] }).map {
                FieldName(foldingUnderscoresIn: Array($0.canonicalName.utf8).span)
            }
        self.cookies = cookies.map(SessionCookieView.init)
        self.limitsCodings = limitsCodings
        let lines = fields.lazy.filter { $0.name == .cookie }.map(\.value)
        cookieFields = cookies.isEmpty && lines.count < 2 ? [] : Array(lines)
        let isMerged = !cookieFields.isEmpty
        self.fields = fields.filter { !isMerged || $0.name != .cookie }.map {
            (Array($0.name.rawName.utf8), $0.name == .authorization, $0.value)
        }
        var kinds: [FieldName] = []
        var otherNames: [[UInt8]] = []
        let connectionNames: [HTTPField.Name] = connection == nil ? [] : [.authorization]
        // A part of a page may begin inside of a value, which is then not found (RFC 9110 §14.2: a range may be ignored).
        let rangeNames: [HTTPField.Name] = injections?.cleansPages == true ? [.range, .ifRange] : []
        for name in fields.map(\.name) + signers.flatMap(\.names) + connectionNames + rangeNames {
            let name = Array(name.canonicalName.utf8)
            let kind = FieldName(foldingUnderscoresIn: name.span)
            // Once each: every field of a request is compared with them.
            if kind != .other {
                if !kinds.contains(kind) { kinds.append(kind) }
            } else if !otherNames.contains(name) {
                otherNames.append(name)
            }
        }
        self.kinds = kinds
        replacesAuthorization = kinds.contains(.authorization)
        self.otherNames = otherNames
    }

    /// True if a caller's own `Authorization` is replaced.
    let replacesAuthorization: Bool

    /// True if nothing is injected.
    package var isEmpty: Bool {
        fields.isEmpty && !hasSigners && !hasCookies && connection == nil && injections == nil
    }

    /// Returns true if an injected field replaces a caller's own field of that name.
    ///
    /// Also returns true for a name that a CGI program would confuse with that of the field (RFC 3875 §4.1.18), such as
    /// `X_Api_Key` for `X-Api-Key`.
    package func override(_ kind: FieldName, named name: Span<UInt8>) -> Bool {
        if kind != .other { return kinds.contains(kind) }
        for other in otherNames where FieldName.areEqualToCGI(other.span, name) { return true }
        return !kinds.isEmpty && kinds.contains(FieldName.imitated(by: name))
    }

    /// Appends the fields to a request; without `Authorization` if the caller's own is sent.
    func write(into sink: FieldSink, keepingCredentials: Bool = false) {
        for field in fields {
            if keepingCredentials, field.isAuthorization { continue }
            field.value.withBytes { sink.append(name: field.name.span, value: $0) }
        }
    }

    /// Calls `body` with each constant field; without `Authorization` if the caller's own is sent.
    func forEach(keepingCredentials: Bool, _ body: (Span<UInt8>, Span<UInt8>) -> Void) {
        for field in fields where !(keepingCredentials && field.isAuthorization) {
            field.value.withBytes { body(field.name.span, $0) }
        }
    }

    /// True if requests of other callers may have used them up.
    var wearsOut: Bool { signers.contains(where: \.wearsOut) || groups.contains(where: \.wearsOut) }
    /// True if some fields are made for each request.
    var hasSigners: Bool { !views.isEmpty }
    /// True if there are cookies.
    var hasCookies: Bool { !cookies.isEmpty || !cookieFields.isEmpty }
    /// True if answers are examined for updates, or for values that callers must not see.
    var examinesAnswers: Bool { hasSigners || hasCookies || injections != nil }

    /// Returns the readers of the body that are needed to sign its request for `target`.
    func bodyReaders(for target: String) -> [any BodyReader] {
        signers.compactMap { $0.bodyReader(for: target) } + groups.flatMap { $0.bodyReaders(for: target) }
    }

    /// Has the signers learn from the final answer to a request for `target`.
    func learn(status: Int, fields: HTTPFields, target: String) {
        for signer in signers { signer.learn(status: status, fields: fields, target: target) }
        for group in groups { group.learn(status: status, fields: fields, target: target) }
    }

    /// Returns a view for each group that the signers belong to.
    private static func groups(of signers: [any RequestSigner]) -> [any SignerGroupView] {
        var positions: [ObjectIdentifier: Int] = [:]
        var groups: [(group: any SignerGroup, signers: [any RequestSigner])] = []
        for signer in signers {
            guard let group = signer.group else { continue }
            if let position = positions[ObjectIdentifier(group)] {
                groups[position].signers.append(signer)
            } else {
                positions[ObjectIdentifier(group)] = groups.count
                groups.append((group, [signer]))
            }
        }
        return groups.map { $0.group.makeView(of: $0.signers) }
    }

    /// Calls `write` with each field made for one request. Returns the checks of its answer.
    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> [any AnswerCheck] {
        var checks: [any AnswerCheck] = []
        for view in views {
            if let check = try view.sign(request, write) { checks.append(check) }
        }
        return checks
    }
}

extension FieldSink: SigningFields {
    /// Calls `body` with each field of the request.
    public func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) { forEachField(body) }
}
