// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc
internal import System

/// Blocking lookup of a host's addresses, for commands.
struct NameLookup {
    /// An address with its port.
    struct Address {
        /// The address as text: `192.0.2.1:443`.
        let text: String
        let address: SocketAddress
    }

    /// Maximum number of addresses.
    private static let maximumAddresses = 8

    let addresses: [Address]
    /// The resolver's error; `nil` if there are addresses.
    let failure: String?

    /// Looks up `host` by the resolver of this machine.
    init(host: String, port: UInt16) {
        do throws(ResolverError) {
            // libcurl resolves these names to loopback without the resolver (RFC 6761 §6.3).
            let name = host.hasSuffix(".localhost") ? "localhost" : host
            addresses = try SocketAddress.resolve(host: name, port: port).prefix(Self.maximumAddresses).map(
                Address.init)
            failure = nil
        } catch {
            addresses = []
            failure = error.description
        }
    }
}

extension NameLookup.Address {
    /// Outcome of a connection attempt.
    enum Outcome {
        case connected(milliseconds: Int)
        case failed(String)
    }

    init(_ address: SocketAddress) {
        self.address = address
        guard let (host, port) = address.hostAndPort else {
            text = "?"
            return
        }
        text = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Connects within `limit`, and closes the connection.
    func connect(within limit: Duration) -> Outcome {
        let began = ContinuousClock.now
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeNonblocking(address.family))
            do throws(SystemError) {
                try address.connect(socket.number)
            } catch {
                guard error.code == EINPROGRESS else { throw error }
                guard try DescriptorIO.waitUntilWritable(socket.number, within: limit) else {
                    return .failed("no answer within \(limit)")
                }
                if let failure = Sockets.pendingError(of: socket.number) { throw failure }
            }
        } catch {
            return .failed(error.description)
        }
        return .connected(milliseconds: Int((ContinuousClock.now - began).milliseconds))
    }
}
