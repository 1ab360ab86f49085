// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// The request that an auth request asks about is read as it would be if its caller had sent it to us.
func checkAuthRequest(_ head: RequestHead, _ bytes: Span<UInt8>) throws(Violation) {
    guard let original = try? head.original(in: bytes) else { return }
    let path = bytes.copy(original.target.path)
    try require(path.first == UInt8(ascii: "/"), "the path in question begins with no slash")
    try require(original.body.isEmpty, "the request in question has a body")
    // With CONNECT a path is no target; admission refuses the method.
    guard original.method != .connect, let host = original.authority else { return }
    let line = bytes.copy(original.methodRange) + [0x20] + bytes.copy(original.target.pathAndQuery)
    let text = line + Array(" HTTP/1.1\r\nHost: ".utf8) + bytes.copy(host) + Array("\r\n\r\n".utf8)
    var parser = RequestHeadParser(limits: HeadLimits(line: 1 << 20, head: 1 << 20))
    guard case .complete = parser.parse(text.span) else {
        throw Violation(
            description: "the request in question could not be sent: \(String(decoding: text, as: UTF8.self))")
    }
    try require(parser.head.method == original.method, "its method is \(original.method)")
    try require(text.span.copy(parser.head.target.path) == path, "its path ends elsewhere")
}
