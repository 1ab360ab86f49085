// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The request in question: the one message `authorize` of a frame, with HAProxy's `method`, `pathq` and `req.hdrs`.
struct SPOPNotification: Equatable {
    /// The reason why the request in question is unclear.
    enum Fault: Error, Equatable {
        /// There is not exactly one message, or its name is not `authorize`.
        case messageUnknown
        /// An argument is missing, repeated, or not text.
        case argumentsIncomplete
        /// An argument contains a character that would end it or begin another line.
        case argumentInvalid
    }

    private let method: ByteRange
    private let target: ByteRange
    private let fields: ByteRange

    /// Reads a payload. Throws if it is not a list of messages.
    static func read(_ payload: ByteRange, in bytes: Span<UInt8>) throws(SPOPFault) -> Result<SPOPNotification, Fault> {
        var scanner = SPOPScanner(payload)
        var isKnown = false
        var arguments = Arguments()
        var count = 0
        while !scanner.isAtEnd {
            isKnown = bytes.matches(try scanner.text(in: bytes), exactly: "authorize")
            count += 1
            for _ in 0..<(try scanner.byte(in: bytes)) {
                let name = try scanner.text(in: bytes)
                arguments.take(name, try scanner.value(in: bytes), in: bytes)
            }
        }
        guard isKnown, count == 1 else { return .failure(.messageUnknown) }
        guard !arguments.isAmbiguous, let method = arguments.method, let target = arguments.target,
            let fields = arguments.fields
        else { return .failure(.argumentsIncomplete) }
        guard isWord(method, in: bytes), isWord(target, in: bytes) else { return .failure(.argumentInvalid) }
        return .success(SPOPNotification(method: method, target: target, fields: fields))
    }

    /// Writes the request as a head, which is then parsed like that of any caller.
    func writeHead(in bytes: Span<UInt8>, to head: inout ByteQueue) {
        head.append(bytes.extracting(method.bounds))
        head.append(UInt8(ascii: " "))
        head.append(bytes.extracting(target.bounds))
        head.append(" HTTP/1.1\r\n")
        head.append(bytes.extracting(fields.bounds))
    }

    private struct Arguments {
        var method: ByteRange?
        var target: ByteRange?
        var fields: ByteRange?
        /// True if an argument is repeated.
        private(set) var isAmbiguous = false
        private var seen: UInt8 = 0

        mutating func take(_ name: ByteRange, _ value: SPOPScanner.Value, in bytes: Span<UInt8>) {
            let text: ByteRange? = if case .text(let range) = value { range } else { nil }
            let bit: UInt8
            if bytes.matches(name, exactly: "method") {
                (method, bit) = (text, 1)
            } else if bytes.matches(name, exactly: "target") {
                (target, bit) = (text, 2)
            } else if bytes.matches(name, exactly: "fields") {
                (fields, bit) = (text, 4)
            } else {
                return
            }
            if seen & bit != 0 { isAmbiguous = true }
            seen |= bit
        }
    }

    /// Returns true if the range may be in a request line: no space and no control character (RFC 9112 §3).
    private static func isWord(_ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard !range.isEmpty else { return false }
        for index in range.bounds where bytes[index] <= 0x20 || bytes[index] == 0x7F { return false }
        return true
    }
}

/// The HAPROXY-HELLO frame, which begins a connection (SPOE.txt section 3.2.4).
struct SPOPHello: Equatable {
    /// The largest frame that both peers accept, in bytes.
    let frameLimit: Int
    /// True if HAProxy only checks whether the agent is there.
    let isHealthCheck: Bool

    /// Reads a payload.
    init(_ payload: ByteRange, in bytes: Span<UInt8>) throws(SPOPFault) {
        var scanner = SPOPScanner(payload)
        var (versions, size, hasCapabilities, isHealthCheck): (ByteRange?, UInt64?, Bool, Bool) = (
            nil, nil, false, false
        )
        while !scanner.isAtEnd {
            let name = try scanner.text(in: bytes)
            switch try scanner.value(in: bytes) {
            case .text(let value) where bytes.matches(name, exactly: "supported-versions"): versions = value
            case .text where bytes.matches(name, exactly: "capabilities"): hasCapabilities = true
            case .number(let value) where bytes.matches(name, exactly: "max-frame-size"): size = value
            case .flag(let value) where bytes.matches(name, exactly: "healthcheck"): isHealthCheck = value
            case .flag, .number, .other, .text: break
            }
        }
        guard let versions else { throw .versionMissing }
        // A peer with version 2.1 knows 2.0 as well.
        guard
            bytes.text(versions).split(separator: ",").contains(where: { version in
                version.drop { $0 == " " }.hasPrefix("2.")
            })
        else { throw .versionUnsupported }
        guard let size else { throw .frameSizeMissing }
        guard hasCapabilities else { throw .capabilitiesMissing }
        guard size >= SPOPFrame.smallest else { throw .frameSizeUnsupported }
        frameLimit = Int(min(size, UInt64(SPOPFrame.largest)))
        self.isHealthCheck = isHealthCheck
    }
}
