// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Writes the answer to an auth request over HTTP: the fields that the request in question is to go upstream with.
struct SubrequestResponse {
    /// An answer is good for no longer than this, in seconds: a session that the upstream ends by itself costs the other
    /// proxy one handing back for each request until then.
    private static let longestLifetime: Int64 = 10

    let browsers: BrowserRule
    let policy: ForwardingPolicy
    let version: HTTPVersion
    let keepsAlive: Bool

    /// Writes the answer with an empty body. `cookies`: as `RequestCookies.field` tells them.
    func write(_ answer: SubrequestAnswer, cookies: [UInt8]?, date: String, to output: inout ByteQueue) {
        ResponseWriter.statusLine(200, to: &output)
        ResponseWriter.field("Date", date.utf8.span, to: &output)
        var hasAuthorization = false
        answer.forEachField { name, value in
            let whole = ByteRange(start: 0, end: name.count)
            if name.matches(whole, ignoringCase: "authorization") { hasAuthorization = true }
            ResponseWriter.field(name, value, to: &output)
        }
        if let cookies {
            if cookies.isEmpty {
                ResponseWriter.field("X-Envoy-Auth-Headers-To-Remove", "cookie", to: &output)
            } else {
                ResponseWriter.field("Cookie", cookies.span, to: &output)
            }
        }
        writeKept(authorization: !hasAuthorization, cookies: answer.cookies == nil, to: &output)
        if answer.lifetime > 0 {
            writeVary(hasCookies: answer.cookies != nil, to: &output)
            output.append("Cache-Control: max-age=")
            output.append(decimal: UInt64(min(answer.lifetime, Self.longestLifetime)))
            output.append("\r\n")
        } else {
            ResponseWriter.field("Cache-Control", "no-store", to: &output)
        }
        ResponseWriter.contentLength(0, to: &output)
        ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &output)
        ResponseWriter.endOfHead(to: &output)
    }

    /// Which of the caller's own fields go as they are. By this short text nginx decides, and not by whether there is a field in
    /// their place: its `map` would copy and hash a whole token for each request.
    private func writeKept(authorization: Bool, cookies: Bool, to output: inout ByteQueue) {
        switch (authorization, cookies) {
        case (true, true): ResponseWriter.field("Countersign-Keep", "Authorization, Cookie", to: &output)
        case (true, false): ResponseWriter.field("Countersign-Keep", "Authorization", to: &output)
        case (false, true): ResponseWriter.field("Countersign-Keep", "Cookie", to: &output)
        case (false, false): break
        }
    }

    /// What of the caller's fields this answer depends on (RFC 9110 §12.5.5). Method, host and target are the cache's key.
    private func writeVary(hasCookies: Bool, to output: inout ByteQueue) {
        var separator: StaticString = "Vary: "
        func add(_ name: StaticString) {
            output.append(separator)
            output.append(name)
            separator = ", "
        }
        if policy.callerCredentials != .replace { add("Authorization") }
        if hasCookies { add("Cookie") }
        if browsers != .allow { add("Origin, Sec-Fetch-Mode, Sec-Fetch-Site") }
        if policy.callerCredentials != .replace || hasCookies || browsers != .allow {
            output.append("\r\n")
        }
    }
}

extension LocalReply {
    /// The sub-request does not say which request it is about.
    init(_ fault: SubrequestFault, listener: String) {
        let said =
            switch fault {
            case .elsewhere:
                "An authority is asked at /authority, or at /authority followed by the path of the request."
            case .fieldsIncomplete:
                "Asked at /authority, it takes X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host, each once."
            case .fieldInvalid:
                "X-Forwarded-Method is no method, X-Forwarded-Uri is no path with its query, or X-Forwarded-Host is no host."
            }
        self.init(
            .badRequest,
            detail: "\(said) The proxy that asks listener \(listener) has to be configured so; see the examples.")
    }

    /// A request that an ordinary listener would answer by itself.
    static let unanswerable = LocalReply(
        .badRequest, detail: "The request ends here, for its Max-Forwards is 0 (RFC 9110 §7.6.2).")

    /// The same as other proxies understand it. nginx takes 401 and 403 for a denial, and Envoy what is below 500; anything else is
    /// a fault of the authority to them, and hides the reason. 401 would have nginx ask again elsewhere.
    var denial: LocalReply {
        LocalReply(self, status: 403)
    }

    /// What nginx can hand to the caller, which never sees the document.
    var denialFields: [(name: String, value: String)] {
        [
            ("Countersign-Code", code.rawValue),
            ("Countersign-Detail", visibleDetail),
        ]
    }

    /// The sentence, as a field can have it.
    var visibleDetail: String { String(decoding: detail.utf8.map(Self.visible), as: UTF8.self) }

    private static func visible(_ byte: UInt8) -> UInt8 {
        (0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?")
    }
}
