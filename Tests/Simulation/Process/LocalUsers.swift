// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// Users of the machine, by whom the kernel names callers over a Unix socket (SO_PEERCRED, unix(7)).
///
/// A pair of sockets has the user of the thread that makes it. Only the thread changes, for a moment: not the process, in which
/// others may run. Without the right to do so, every caller is the user of the process.
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

    /// Returns the user of the callers who are to be `user`.
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
