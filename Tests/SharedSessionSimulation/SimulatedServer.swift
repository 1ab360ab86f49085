// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The server that the simulation logs in to: a password, and the sessions that it has given out.
struct SimulatedServer {
    enum Answer {
        case rejected
        case session(Int)
    }

    private(set) var password = 1
    /// The logins that it was asked for, refused ones included.
    private(set) var logins = 0
    private(set) var lastSession = 0
    /// Sessions up to this one have ended with a restart.
    private var over = 0
    private var ends: [Int: Int64] = [:]
    private var lastPassword = 1

    mutating func logIn(_ given: Int, now: Int64, life: Int64) -> Answer {
        logins += 1
        guard given == password else { return .rejected }
        lastSession += 1
        ends[lastSession] = now + life
        return .session(lastSession)
    }

    func isValid(_ session: Int, now: Int64) -> Bool { session > over && (ends[session] ?? 0) > now }

    mutating func restart() { over = lastSession }

    /// Wrong ones are a thousand more, so that none comes twice.
    mutating func changePassword() -> Int {
        lastPassword += 1
        password = lastPassword
        return password
    }
}
