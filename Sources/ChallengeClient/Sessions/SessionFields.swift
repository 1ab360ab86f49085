// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
package import HTTPWire
internal import Secrets

/// The fields that the sessions of a route inject, rendered once and used for each request.
package final class SessionFields {
    /// No fields.
    @safe package nonisolated(unsafe) static let none = SessionFields([])

    /// True if responses must be such that their pages can be read: which codings the upstream is offered.
    package let limitsCodings: Bool
    let signers: [any RequestSigner]
    private let views: [any SignerView]
    /// The kinds of an answer's fields that the signers learn from; `nil`: all.
    let learnsFrom: [FieldName]?
    let cookies: [SessionCookieView]
    /// Injected `Cookie` fields that have to become one line with others (RFC 6265 §5.4).
    let cookieFields: [Secret]
    /// What the connection of the request is authenticated with, by libcurl.
    let connection: ConnectionCredential?
    private let fields: [(name: [UInt8], isAuthorization: Bool, value: Secret)]
    private let kinds: [FieldName]
    private let otherNames: [[UInt8]]

    convenience init(_ fields: [InjectedField]) { self.init(fields, signers: [], cookies: []) }

    /// What those sessions inject.
    convenience init(_ sessions: [Session], limitsCodings: Bool) {
        self.init(
            sessions.flatMap(\.fields), signers: sessions.compactMap(\.signer), cookies: sessions.compactMap(\.cookies),
            connection: sessions.lazy.compactMap(\.connection).first, limitsCodings: limitsCodings)
    }

    private init(
        _ fields: [InjectedField], signers: [any RequestSigner], cookies: [SessionCookies],
        connection: ConnectionCredential? = nil, limitsCodings: Bool = false
    ) {
        self.connection = connection
        self.signers = signers
        views = signers.map { $0.makeView() }
        learnsFrom =
            signers.contains { $0.learnsFrom == nil }
            ? nil
            : signers.flatMap { $0.learnsFrom ?? [] }.map {
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
        for name in fields.map(\.name) + signers.flatMap(\.names) + connectionNames {
            let name = Array(name.canonicalName.utf8)
            let kind = FieldName(foldingUnderscoresIn: name.span)
            if kind == .other { otherNames.append(name) } else { kinds.append(kind) }
        }
        self.kinds = kinds
        self.otherNames = otherNames
    }

    /// True if nothing is injected.
    package var isEmpty: Bool { fields.isEmpty && signers.isEmpty && !hasCookies && connection == nil }

    /// Returns whether a caller's own field of that name gives way to one of these. So does one that a CGI program takes for it
    /// (RFC 3875 §4.1.18), such as `X_Api_Key` for `X-Api-Key`.
    package func override(_ kind: FieldName, named name: Span<UInt8>) -> Bool {
        if kind != .other { return kinds.contains(kind) }
        for other in otherNames where FieldName.areEqualToCGI(other.span, name) { return true }
        return !kinds.isEmpty && kinds.contains(FieldName.imitated(by: name))
    }

    /// Appends them to a request; without `Authorization` where the caller's own goes.
    func write(into sink: FieldSink, keepingCredentials: Bool = false) {
        for field in fields {
            if keepingCredentials, field.isAuthorization { continue }
            field.value.withBytes { sink.append(name: field.name.span, value: $0) }
        }
    }

    /// Shows each field that is always the same to `body`; without `Authorization` where the caller's own goes.
    func forEach(keepingCredentials: Bool, _ body: (Span<UInt8>, Span<UInt8>) -> Void) {
        for field in fields where !(keepingCredentials && field.isAuthorization) {
            field.value.withBytes { body(field.name.span, $0) }
        }
    }

    /// True if the requests of others may have used them up.
    var wearsOut: Bool { signers.contains(where: \.wearsOut) }
    /// True if some fields are made for each request.
    var hasSigners: Bool { !signers.isEmpty }
    /// True if cookies go along.
    var hasCookies: Bool { !cookies.isEmpty || !cookieFields.isEmpty }
    /// True if something is to be learned from answers.
    var isAttentive: Bool { hasSigners || hasCookies }

    /// What a body is to be fed to before its request, for `target`, is signed.
    func bodyDigests(for target: String) -> [any RunningDigest] { signers.compactMap { $0.bodyDigest(for: target) } }

    /// Shows the fields that are made for one request to `write`, each when its signer has made them. Returns what the answer is shown
    /// to.
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
