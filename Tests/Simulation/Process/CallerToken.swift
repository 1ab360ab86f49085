// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A token by which a listener knows a caller.
struct CallerToken {
    /// The field with the token.
    static let field = "X-Caller-Token"
    /// The caller with a credential of its own at some upstreams.
    static let visitor = CallerToken(name: "visitor", text: "visitor-4f6a1c0de9b27781")
    /// A caller for whom the credential of all others is used.
    static let clerk = CallerToken(name: "clerk", text: "clerk-90c3d2a7715be44f")
    /// Two callers with one token: nobody can tell them apart.
    static let twins = ["twin-a", "twin-b"].map { CallerToken(name: $0, text: "twins-0b8e33aa61f0d95c") }

    /// The credential, which names the caller.
    let name: String
    let text: String

    /// Returns the tokens of a listener.
    static func all(hasTwins: Bool) -> [CallerToken] { [visitor, clerk] + (hasTwins ? twins : []) }

    /// Returns a request with the token, after its first line.
    func presented(in request: [UInt8]) -> [UInt8] {
        guard let end = request.firstIndex(of: UInt8(ascii: "\n")) else { return request }
        return request[...end] + Array("\(Self.field): \(text)\r\n".utf8) + request[(end + 1)...]
    }
}
