// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Method and path of a request, without its query: what scopes and refusals are remembered for.
struct RouteKey: Hashable, Sendable {
    let method: RequestMethod
    let path: [UInt8]

    /// `target` may hold a query.
    init(method: RequestMethod, target: borrowing ByteQueue) {
        self.method = method
        path = target.withSpan { bytes in bytes.copy(ByteRange(start: 0, end: Self.pathLength(bytes))) }
    }

    /// The path as text.
    var pathText: String { String(decoding: path, as: UTF8.self) }

    /// The method and the path as text.
    var text: String { "\(method.rawValue) \(pathText)" }

    /// A number for the route of a request, the same as that of its key: found without making one.
    static func fingerprint(_ method: RequestMethod, _ target: Span<UInt8>) -> Int {
        var hasher = Hasher()
        hasher.combine(method.rawValue)
        unsafe target.extracting(0..<pathLength(target)).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    /// The number for this key.
    var fingerprint: Int { Self.fingerprint(method, path.span) }

    /// True if this is the key of a request.
    func matches(_ method: RequestMethod, _ target: Span<UInt8>) -> Bool {
        guard self.method == method, Self.pathLength(target) == path.count else { return false }
        for index in path.indices where path[index] != target[index] { return false }
        return true
    }

    private static func pathLength(_ target: Span<UInt8>) -> Int {
        var length = 0
        while length < target.count, target[length] != UInt8(ascii: "?") { length += 1 }
        return length
    }
}
