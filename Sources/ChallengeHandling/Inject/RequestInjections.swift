// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Secrets

/// Fault of a request or a credential that keeps a value out of a request; nothing is sent then.
package struct InjectionFault: Error, Equatable {
    /// Kind of a fault.
    package enum Kind: Sendable, Equatable {
        /// The body is longer than can be changed.
        case bodyTooLong
        /// The request has no single place for the value.
        case requestUnfit
    }

    /// Kind.
    package let kind: Kind
    /// The problem and its remedy, in one or two sentences, without secrets.
    package let detail: String

    init(_ detail: String, kind: Kind = .requestUnfit) {
        self.kind = kind
        self.detail = detail
    }

    /// Returns the fault of a body that is longer than `RequestInjections.bodyLimit`, or than the kept part of it.
    package static let bodyTooLong = InjectionFault(
        """
        A value of the credential belongs in the body of this request, which must therefore be read whole first: 512 KiB at \
        most, and no more than `replay` of the upstream allows. This body is longer.
        """, kind: .bodyTooLong)
}

/// Values that a session puts into the target and the body of each request (`inject` with `query`, `path`, `body`).
///
/// Rendered once when the session begins, and shared by all workers.
package final class RequestInjections: Sendable {
    /// Size of the longest body that is changed: it is changed in one turn of the loop, which takes milliseconds.
    package static let bodyLimit = 512 * 1024

    /// Parameter of the query: its name, and its value as it is.
    struct Parameter: Sendable {
        let name: [UInt8]
        let value: Secret
    }

    /// Parameters of the query, in order.
    let parameters: [Parameter]
    /// The parameters, encoded: `a=1&b=2`. Nil without parameters.
    private let query: Secret?
    private let names: [[UInt8]]
    /// Encoded path before the request's, without a slash at its end; nil without one.
    let path: Secret?
    private let members: [BodyMember]
    /// True if pages of the response have the secrets replaced.
    package let cleansPages: Bool
    /// Secrets that are searched for in responses.
    let secrets: [Secret]
    /// Removes the values from responses.
    package let cleaner: ResponseCleaner

    init(
        parameters: [Parameter] = [], path: Secret? = nil, members: [BodyMember] = [], secrets: [Secret] = [],
        cleansPages: Bool = false
    ) {
        self.parameters = parameters
        self.path = path
        self.members = members
        self.secrets = secrets
        self.cleansPages = cleansPages
        names = parameters.map(\.name)
        var query = SecretBuilder()
        for parameter in parameters {
            if query.count > 0 { query.append(UInt8(ascii: "&")) }
            PercentCoding.append(Secret(parameter.name), to: &query, keeping: .unreserved)
            query.append(UInt8(ascii: "="))
            PercentCoding.append(parameter.value, to: &query, keeping: .unreserved)
        }
        self.query = parameters.isEmpty ? nil : query.finish()
        cleaner = ResponseCleaner(parameters: parameters, path: path, secrets: secrets)
    }

    /// Returns the values of several sessions as one; nil if there are none.
    package static func merged(_ all: [RequestInjections]) -> RequestInjections? {
        guard all.count > 1 else { return all.first }
        let paths = all.compactMap(\.path)
        return RequestInjections(
            parameters: all.flatMap(\.parameters), path: paths.isEmpty ? nil : .joining(paths),
            members: all.flatMap(\.members), secrets: all.flatMap(\.secrets),
            cleansPages: all.contains(where: \.cleansPages))
    }

    /// True if there are values for bodies.
    package var changesBodies: Bool { !members.isEmpty }

    // MARK: Target

    /// Passes the pieces of the target as sent upstream to `emit`, from the caller's `target`.
    ///
    /// `base` is the length of the upstream's own path, which `target` begins with. Parameters of the caller that have
    /// the name of an injected one are left out (RFC 3986 §3.4 leaves the syntax of queries open; this is that of forms).
    package func writeTarget(_ target: Span<UInt8>, base: Int, _ emit: (Span<UInt8>) -> Void) {
        // `*` of OPTIONS has neither path nor query (RFC 9112 §3.2.4).
        guard target.count > 0, target[0] == UInt8(ascii: "/") else { return emit(target) }
        var end = 0
        while end < target.count, target[end] != UInt8(ascii: "?") { end += 1 }
        if let path {
            let start = min(max(base, 0), end)
            emit(target.extracting(0..<start))
            path.withBytes { emit($0) }
            emit(target.extracting(start..<end))
        } else {
            emit(target.extracting(0..<end))
        }
        guard let query else { return emit(target.extracting(end..<target.count)) }
        emit(Self.question.span)
        var isFirst = true
        if end < target.count {
            ParameterList.forEach(target, end + 1..<target.count, without: names) { parameter, separator in
                // A query that is empty, or has become so, has no parameter to separate from the injected one.
                if isFirst, parameter.isEmpty { return }
                if !isFirst { emit(separator == UInt8(ascii: ";") ? Self.semicolon.span : Self.ampersand.span) }
                emit(target.extracting(parameter))
                isFirst = false
            }
        }
        if !isFirst { emit(Self.ampersand.span) }
        query.withBytes { emit($0) }
    }

    private static let question = Array("?".utf8)
    private static let ampersand = Array("&".utf8)
    private static let semicolon = Array(";".utf8)

    /// Returns the fault of a target that would leave the injected path by dot segments; nil if it would not.
    ///
    /// The upstream would resolve `/bot{token}/../admin` to `/admin` (RFC 3986 §5.2.4).
    package func fault(ofTarget target: Span<UInt8>) -> InjectionFault? {
        guard path != nil else { return nil }
        var end = 0
        while end < target.count, target[end] != UInt8(ascii: "?") { end += 1 }
        guard PercentCoding.hasDotSegment(target.extracting(0..<end)) else { return nil }
        return InjectionFault(
            """
            The path has a segment `.` or `..`, which would lead out of the path that a credential is part of. Send the path \
            without such segments.
            """)
    }

    // MARK: Body

    /// Returns `body` with the values in place; throws if there is not exactly one place for each.
    package func changed(_ body: [UInt8], form: BodyFormat) throws(InjectionFault) -> Secret {
        guard body.count <= Self.bodyLimit else { throw .bodyTooLong }
        switch form {
        case .json: return try JSONSplicer.spliced(body, members)
        case .parameters: return try FormSplicer.spliced(body, members)
        }
    }
}
