// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// HAProxy's end of a connection. It writes and reads frames by HAProxy's SPOE.txt only.
struct SPOPPeer {
    /// A frame from the agent.
    struct Frame {
        var type: UInt8
        var stream: UInt64
        var number: UInt64
        /// Items of a greeting or an end, or variables that are set, by name.
        var items: [String: Value] = [:]
    }

    enum Value: Equatable {
        case flag(Bool)
        case number(UInt64)
        case text(String)
    }

    let peer: Peer
    /// Kept alive as long as this peer.
    private let rig: AuthRequestRig

    /// Connects.
    init(_ rig: AuthRequestRig) throws {
        self.rig = rig
        peer = try rig.proxy.connect()
    }

    /// Returns a peer that has exchanged greetings.
    static func greeting(_ rig: AuthRequestRig, frameLimit: UInt64 = 16_380) throws -> SPOPPeer {
        let peer = try SPOPPeer(rig)
        try peer.peer.send(hello(frameLimit: frameLimit))
        let answer = try peer.frame()
        #expect(answer.type == 101 && answer.stream == 0 && answer.number == 0)
        #expect(
            answer.items == [
                "version": .text("2.0"), "max-frame-size": .number(frameLimit), "capabilities": .text("pipelining"),
            ])
        return peer
    }

    /// Asks about a request, and returns the variables that are set.
    func ask(
        _ method: String = "GET", _ target: String = "/a", _ fields: String = "", stream: UInt64 = 7, number: UInt64 = 1
    ) throws -> [String: Value] {
        try peer.send(Self.question(method, target, fields, stream: stream, number: number))
        return try acknowledgement(stream: stream, number: number)
    }

    /// Returns the variables of the next frame, which has to be an ACK.
    func acknowledgement(stream: UInt64 = 7, number: UInt64 = 1) throws -> [String: Value] {
        let frame = try frame()
        #expect(frame.type == 103 && frame.stream == stream && frame.number == number)
        return frame.items
    }

    /// Reads the agent's end, and returns its status.
    func end() throws -> UInt64? {
        let frame = try frame()
        #expect(frame.type == 102)
        try peer.expectEnd()
        guard case .number(let code) = frame.items["status-code"] else { return nil }
        return code
    }

    /// Reads the next frame.
    func frame() throws -> Frame {
        let length = try peer.read(count: 4).reduce(0) { $0 << 8 | Int($1) }
        var rest = try peer.read(count: length)[...]
        let type = rest.removeFirst()
        #expect(rest.prefix(4) == [0, 0, 0, 1])
        rest.removeFirst(4)
        var frame = Frame(type: type, stream: try Self.number(&rest), number: try Self.number(&rest))
        while !rest.isEmpty {
            // SET-VAR, of three arguments, in a transaction.
            if type == 103 {
                #expect(rest.prefix(3) == [1, 3, 2])
                rest.removeFirst(3)
            }
            let name = try Self.text(&rest)
            let kind = rest.removeFirst()
            switch kind {
            case 1, 17: frame.items[name] = .flag(kind == 17)
            case 3, 4: frame.items[name] = .number(try Self.number(&rest))
            case 8: frame.items[name] = .text(try Self.text(&rest))
            default: throw Peer.Problem(doing: "read a value of type \(kind)")
            }
        }
        return frame
    }

    // MARK: Writing

    static func hello(
        versions: String? = "2.0", frameLimit: UInt64? = 16_380, capabilities: String? = "pipelining,async",
        isHealthCheck: Bool = false
    ) -> [UInt8] {
        var payload: [UInt8] = []
        if let versions { payload += text("supported-versions") + [8] + text(versions) }
        if let frameLimit { payload += text("max-frame-size") + [3] + number(frameLimit) }
        if let capabilities { payload += text("capabilities") + [8] + text(capabilities) }
        payload += text("engine-id") + [8] + text("an engine")
        if isHealthCheck { payload += text("healthcheck") + [17] }
        return frame(1, payload)
    }

    static func question(
        _ method: String = "GET", _ target: String = "/a", _ fields: String = "", stream: UInt64 = 7, number: UInt64 = 1
    ) -> [UInt8] {
        let fields = "host: bank.example\r\n\(fields)\r\n"
        let arguments = [("method", method), ("target", target), ("fields", fields)]
        return frame(3, message("authorize", arguments), stream: stream, number: number)
    }

    static func message(_ name: String, _ arguments: [(String, String)]) -> [UInt8] {
        text(name) + [UInt8(arguments.count)] + arguments.flatMap { text($0.0) + [8] + text($0.1) }
    }

    static func frame(
        _ type: UInt8, _ payload: [UInt8], flags: UInt8 = 1, stream: UInt64 = 0, number: UInt64 = 0
    ) -> [UInt8] {
        let frame = [type, 0, 0, 0, flags] + self.number(stream) + self.number(number) + payload
        return [24, 16, 8, 0].map { UInt8(frame.count >> $0 & 255) } + frame
    }

    static func number(_ value: UInt64) -> [UInt8] {
        guard value >= 240 else { return [UInt8(value)] }
        var bytes = [UInt8(value & 15) | 240]
        var rest = (value - 240) / 16
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest = (rest - 128) / 128
        }
        return bytes + [UInt8(rest)]
    }

    private static func text(_ text: String) -> [UInt8] { number(UInt64(text.utf8.count)) + Array(text.utf8) }

    // MARK: Reading

    private static func number(_ bytes: inout ArraySlice<UInt8>) throws -> UInt64 {
        guard let first = bytes.popFirst() else { throw Peer.Problem(doing: "read a number") }
        var (value, factor) = (UInt64(first), UInt64(16))
        guard first >= 240 else { return value }
        while let next = bytes.popFirst() {
            value += UInt64(next) * factor
            factor *= 128
            if next < 128 { return value }
        }
        throw Peer.Problem(doing: "read a number")
    }

    private static func text(_ bytes: inout ArraySlice<UInt8>) throws -> String {
        let count = Int(try number(&bytes))
        defer { bytes.removeFirst(count) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
