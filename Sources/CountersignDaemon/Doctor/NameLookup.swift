// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// The addresses of a host, and whether somebody listens there. Blocks, as only a command may.
struct NameLookup {
    /// An address with its port.
    struct Address {
        /// `192.0.2.1:443`, for people.
        let text: String
        let family: Int32
        let bytes: [UInt8]
    }

    /// So many addresses are looked at.
    private static let mostAddresses = 8

    let addresses: [Address]
    /// Why there is none; in the resolver's words.
    let failure: String?

    /// Asks the resolver of this machine.
    init(host: String, port: UInt16) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        // libcurl takes these for loopback by itself (RFC 6761 section 6.3).
        let name = host.hasSuffix(".localhost") ? "localhost" : host
        let code = unsafe getaddrinfo(name, "\(port)", &hints, &list)
        defer { unsafe freeaddrinfo(list) }
        guard code == 0 else {
            addresses = []
            failure = unsafe String(cString: gai_strerror(code))
            return
        }
        failure = nil
        var found: [Address] = []
        var next = unsafe list
        while let entry = unsafe next?.pointee, found.count < Self.mostAddresses {
            if let address = unsafe entry.ai_addr {
                let bytes = unsafe Array(UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen)))
                unsafe found.append(
                    Address(
                        text: Self.text(address, entry.ai_addrlen, port: port), family: entry.ai_family, bytes: bytes))
            }
            unsafe next = entry.ai_next
        }
        addresses = found
    }

    private static func text(_ address: UnsafePointer<sockaddr>, _ length: socklen_t, port: UInt16) -> String {
        var name = [CChar](repeating: 0, count: 128)
        let code = unsafe getnameinfo(address, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
        let text =
            code == 0 ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : "?"
        return text.contains(":") ? "[\(text)]:\(port)" : "\(text):\(port)"
    }
}

extension NameLookup.Address {
    /// How a connection went.
    enum Outcome {
        case connected(milliseconds: Int)
        case failed(String)
    }

    /// Connects and closes, within `limit`.
    func connect(within limit: Duration) -> Outcome {
        let began = ContinuousClock.now
        let descriptor = clinux_socket(family, Int32(SOCK_STREAM.rawValue))
        guard descriptor >= 0 else { return .failed(Self.words(-descriptor)) }
        defer { _ = close(descriptor) }
        let result = SocketAddress.connect(descriptor, to: bytes)
        if result != 0 {
            guard result == EINPROGRESS else { return .failed(Self.words(result)) }
            var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard unsafe poll(&entry, 1, Int32(clamping: Int(limit / .milliseconds(1)))) > 0 else {
                return .failed("no answer within \(limit)")
            }
            var failure: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &length)
            if failure != 0 { return .failed(Self.words(failure)) }
        }
        return .connected(milliseconds: Int((ContinuousClock.now - began) / .milliseconds(1)))
    }

    private static func words(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
