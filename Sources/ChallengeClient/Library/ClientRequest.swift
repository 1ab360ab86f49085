// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
public import HTTPTypes

/// A request that can be sent: where to, and what.
struct ClientRequest: Sendable {
    let origin: Origin
    /// Path and query, as they go out.
    let path: String
    let method: String
    let fields: HTTPFields
    let body: RequestBody
    let timeout: Duration?
    /// The protocol that is asked for, if one is.
    var upgrade: String?

    /// Throws `badRequest` where `request` cannot be sent as it is.
    init(_ request: HTTPRequest, body: RequestBody, timeout: Duration?) throws(ClientError) {
        guard let scheme = request.scheme.flatMap({ Origin.Scheme(rawValue: $0.lowercased()) }) else {
            throw Self.bad("Its scheme is neither http nor https.")
        }
        guard let authority = request.authority, let url = WebURL("\(scheme.rawValue)://\(authority)"), url.path == "/",
            url.query == nil
        else {
            throw Self.bad("Its authority is no HOST or HOST:PORT, without user info.")
        }
        let path = request.path ?? "/"
        let isAsterisk = path == "*" && request.method == .options
        guard isAsterisk || path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }) else {
            throw Self.bad("Its path does not begin with a slash, or holds what has to be percent-encoded.")
        }
        // CONNECT is for a proxy; TRACE would show a session's secrets to whoever answers (RFC 9110 section 9.3.8).
        guard request.method != .connect, request.method != .trace else {
            throw Self.bad("CONNECT and TRACE are not sent.")
        }
        origin = url.origin
        self.path = path
        method = request.method.rawValue
        fields = request.headerFields
        self.body = body
        self.timeout = timeout
    }

    private static func bad(_ why: String) -> ClientError {
        ClientError(.badRequest, detail: "The request cannot be sent. \(why)")
    }
}

extension HTTPRequest {
    /// A request to `url`.
    public init(_ method: Method = .get, to url: WebURL, fields: HTTPFields = [:]) {
        self.init(
            method: method, scheme: url.origin.scheme.rawValue, authority: url.origin.authority, path: url.target,
            headerFields: fields)
    }
}
