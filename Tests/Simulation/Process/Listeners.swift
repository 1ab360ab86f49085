// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

@testable import Proxy

/// A listener of the daemon.
enum ListenerKind: Hashable {
    /// For everybody, with all routes.
    case common
    /// For callers with a token.
    case token
    /// For some users, at some times.
    case restricted
    /// Health and status over TCP, which every user of the machine reaches.
    case adminTCP
    /// Health, status and changes over a Unix socket.
    case adminUnix
}

/// The listeners of a daemon, the users admitted, and the number of callers.
final class Listeners {
    /// The user admitted by a restricted listener.
    static let admitted: UInt32 = 1_001
    /// Other users of the machine.
    static let others: [UInt32] = [1_002, 1_003]
    /// The listeners in the order of the configuration.
    static let kinds: [ListenerKind] = [.common, .token, .restricted, .adminTCP, .adminUnix]
    /// The least number of callers in a run with a crowd: the few ordinary ones have to find a place.
    private static let leastLimit = 16

    /// True if the common and the restricted listener are Unix sockets.
    let isUnix: Bool
    /// True if others than the ordinary callers hold connections.
    let isCrowded: Bool
    /// The number of callers at once.
    let limit: Int
    /// True if two callers have the same token.
    let hasTwins: Bool
    /// True if the restricted listener has `users`.
    private(set) var isRestricted: Bool
    /// The number of times that `users` came or went.
    private(set) var changes = 0
    private let file: String

    /// Creates the listeners of one run; `file` is the path of a Unix socket.
    init(_ chance: inout Chance, isUnix: Bool, file: String) {
        self.isUnix = isUnix
        self.file = file
        isCrowded = chance.oneIn(3)
        limit = isCrowded ? Self.leastLimit + chance.below(Self.leastLimit) : 4 * Self.leastLimit
        hasTwins = chance.oneIn(2)
        isRestricted = chance.oneIn(2)
    }

    /// Gives `users` to the restricted listener, or takes them away; the next reload applies the change.
    func change() {
        isRestricted.toggle()
        changes += 1
    }

    /// Returns true if callers come over a Unix socket, so that the kernel names them.
    func isUnix(_ kind: ListenerKind) -> Bool {
        switch kind {
        case .common, .restricted: isUnix
        case .token, .adminTCP: false
        case .adminUnix: true
        }
    }

    /// Returns true if `user` is admitted at present.
    func admits(_ user: UInt32?, at kind: ListenerKind) -> Bool {
        // Over TCP the kernel names none of these callers.
        kind != .restricted || !isRestricted || isUnix && user == Self.admitted
    }

    /// Returns the address of the sockets that take the place of all listeners of that kind.
    func point(isUnix: Bool) -> ListenPoint {
        isUnix ? .unix(path: file, mode: 0o600) : .tcp(host: "127.0.0.1", port: 0)
    }

    /// Returns `listeners`, `admin` and `limits` of the configuration. `routes`: those of the common listener.
    func configuration(routes: [String], tokenRoutes: [String], upstream: String) -> [String] {
        let tokens = CallerToken.all(hasTwins: hasTwins).map(\.name).joined(separator: ", ")
        var lines = [
            "listeners:", isUnix ? "  - address: unix:/run/countersign-simulation.sock" : "  - address: 127.0.0.1:8080",
            "    routes:",
        ]
        lines += routes
        lines += [
            "  - address: 127.0.0.1:8090", "    callers: { field: \(CallerToken.field), credentials: [\(tokens)] }",
            "    routes:",
        ]
        lines += tokenRoutes
        lines += [
            isUnix ? "  - address: unix:/run/countersign-restricted.sock" : "  - address: 127.0.0.1:8091",
            "    upstream: \(upstream)",
        ]
        if isRestricted { lines.append("    users: [\"\(Self.admitted)\"]") }
        return lines + [
            "admin: { address: [127.0.0.1:9180, \"unix:/run/countersign-admin.sock\"] }",
            "limits: { callers: \(limit) }",
        ]
    }
}

/// A token by which a listener knows a caller.
struct CallerToken {
    /// The field with the token.
    static let field = "X-Caller-Token"
    /// The caller with a credential of its own at some upstreams.
    static let visitor = CallerToken(name: "visitor", text: "visitor-4f6a1c0de9b27781")
    /// A caller that uses the credential for all others.
    static let clerk = CallerToken(name: "clerk", text: "clerk-90c3d2a7715be44f")
    /// Two callers with one token, which therefore cannot be told apart.
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

/// Users of the machine, as the kernel identifies callers over a Unix socket (SO_PEERCRED, unix(7)).
///
/// A pair of sockets has the user of the thread that makes it. Only the thread changes its user, for a moment: not the
/// process, in which others may run. Without the right to do so, every caller is the user of the process.
enum LocalUsers {
    private typealias SystemCall = @convention(c) (Int, Int, Int, Int) -> Int

    #if arch(arm64)
        private static let setresuid = 147
    #else
        private static let setresuid = 117
    #endif
    /// The argument that leaves a number as it is (setresuid(2)).
    private static let unchanged = -1

    /// `syscall`, which Swift does not import: it takes any number of arguments. The call of the C library would change all threads.
    private static let systemCall: SystemCall? = {
        guard let symbol = unsafe dlsym(nil, "syscall") else { return nil }
        return unsafe unsafeBitCast(symbol, to: SystemCall.self)
    }()

    /// True if callers may be of any user.
    static let areKnown: Bool = {
        guard geteuid() == 0 else { return false }
        let isDone = become(Listeners.admitted)
        return become(0) && isDone
    }()

    /// Returns the user by which callers meant to be `user` are known.
    static func known(_ user: UInt32) -> UInt32 { areKnown ? user : geteuid() }

    private static func become(_ user: UInt32) -> Bool {
        systemCall.map { $0(setresuid, unchanged, Int(user), unchanged) == 0 } ?? false
    }

    /// Returns the two ends of a new connection of `user`.
    static func connection(of user: UInt32) -> (daemon: Int32, caller: Int32)? {
        let isChanged = areKnown && user != 0 && become(user)
        defer { if isChanged { _ = become(0) } }
        var pair: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0 else { return nil }
        return (pair[0], pair[1])
    }
}
