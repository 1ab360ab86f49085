// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets

/// Server of a schedule, which counts the attempts that could lock an account, and its store of credentials.
struct ModelServer {
    /// Account of one credential name.
    struct Account {
        /// Password that the server accepts; `stored` is the one in the credential store.
        var password = 0
        var stored = 0
        /// Passwords that were ever accepted.
        var taken: Set<Int> = [0]
        /// Refusals by password since an operator last opened the latches.
        var refusals: [Int: Int] = [:]
        /// Attempts before the account locks, as its challenges say.
        var remaining = 2
        /// Uses of each step of its one-time passwords.
        var codes: [Int64: Int] = [:]
    }

    var accounts: [String: Account] = [:]
    var isDown = false
    /// Credential names by valid token.
    private var tokens: [String: String] = [:]
    private var lastToken = 0

    /// Returns true if it accepts the password, and counts a refusal.
    mutating func takes(_ password: Int, of name: String) -> Bool {
        guard accounts[name, default: Account()].password == password else {
            accounts[name, default: Account()].refusals[password, default: 0] += 1
            accounts[name, default: Account()].remaining -= 1
            return false
        }
        accounts[name, default: Account()].remaining = 2
        accounts[name, default: Account()].taken.insert(password)
        return true
    }

    /// Counts the use of a step's code.
    mutating func took(code step: Int64, of name: String) {
        accounts[name, default: Account()].codes[step, default: 0] += 1
    }

    mutating func token(for name: String) -> String {
        lastToken += 1
        let token = "\(name)/\(lastToken)"
        tokens[token] = name
        return token
    }

    func isValid(_ token: String) -> Bool { tokens[token] != nil }

    /// Ends all sessions, as a restart does.
    mutating func restart() { tokens = [:] }

    func stored(_ name: String) -> Int { accounts[name]?.stored ?? 0 }
}

/// Resources of the server. One of them is forbidden to its authenticated users.
enum ModelResource {
    static let forbidden = 0
    static let all = 0..<2
}

/// A login in progress.
struct ModelLogin {
    var key: SessionKey
    /// Password as looked up when the login began. Nil if a latch was closed, so that nothing is sent.
    var password: Int?
    /// True if it sends nothing and ends by its deadline only.
    var isHanging = false
}

/// An exchange in progress.
enum ModelExchange {
    case waiting(SessionKey, resource: Int)
    /// Sent with a session; `isUnverified`: as its trial.
    case sent(SessionKey, HeldSession, resource: Int, isUnverified: Bool, rounds: Int)
}

/// Keys of the schedules: two scopes of one client, their challenge with another credential, and a scheme with
/// unverified sessions, with the credentials of two users.
enum ModelKeys {
    private static let origin = Origin(scheme: .https, host: "bank.example")
    static let all = [
        SessionKey(origin: origin, challenge: "bank", credential: "ann"),
        SessionKey(origin: origin, challenge: "bank", credential: "ann", scope: "accounts"),
        SessionKey(origin: origin, challenge: "bank", credential: "bob"),
        SessionKey(origin: origin, challenge: "corp", credential: "carl"),
        SessionKey(origin: origin, challenge: "corp", credential: "dora"),
    ]

    /// Returns true if the login uses one-time passwords.
    static func hasCodes(_ key: SessionKey) -> Bool { key.credential == "bob" }

    static func isUnverified(_ key: SessionKey) -> Bool { key.challenge == "corp" }

    /// Returns a session that sends a password.
    static func session(_ password: Int, _ key: SessionKey) -> Session {
        let credential = Credential(name: key.credential, fields: ["password": Secret("\(password)")])
        return Session(
            unverified: CredentialUse(key: latch(key), credential: credential),
            fields: [InjectedField(name: .authorization, value: Secret("\(key.credential)/=\(password)"))])
    }

    static func latch(_ key: SessionKey) -> LatchKey {
        LatchKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}

extension HeldSession {
    /// Injected value of the model's requests: `credential/number`.
    var text: String { session.fields.first?.value.revealText() ?? "" }

    /// Password, if the session injects one.
    var password: Int? { text.split(separator: "=").last.flatMap { Int($0) } }
}

/// Disk of a schedule. While a write is in progress anything can happen, a crash included.
struct ModelDisk {
    /// Record on disk.
    private(set) var record = AttemptRecord()
    /// Changes that are not on disk yet.
    var queue = AttemptQueue()
    private var writing: (changes: [AttemptChange], record: AttemptRecord)?

    /// Ends the write in progress, or begins one. Returns the number of changes written.
    mutating func turn(_ gate: inout AttemptGate<Int>) -> Int {
        guard let (changes, _) = writing else {
            writing = queue.begin().map { ($0, gate.record) }
            return 0
        }
        write()
        gate.merge(record, then: queue.queued)
        _ = queue.end()
        return changes.count
    }

    /// Returns true if a change is on disk, or if there was none.
    func has(_ ticket: AttemptQueue.Ticket?) -> Bool { ticket.map(queue.hasEnded) ?? true }

    /// Kills the process. `isWritten`: the write in progress has reached the disk.
    mutating func crash(isWritten: Bool) {
        if isWritten { write() }
        writing = nil
        queue = AttemptQueue()
    }

    private mutating func write() {
        guard let (changes, own) = writing else { return }
        writing = nil
        for change in changes { record.apply(change) }
        var sum = own
        sum.merge(record, then: changes)
        record = sum
    }
}

/// A step that continues when a change is on disk.
struct ModelWrite {
    enum Next {
        /// Sends the password, with the code of a step.
        case send(Int, code: Int64)
        /// Ends the login.
        case finish(Result<Session, LoginFailure>)
        /// Ends the session that was in doubt.
        case end(generation: UInt64, LoginFailure)
    }

    var key: SessionKey
    /// The change; `nil` if there is nothing to write.
    var ticket: AttemptQueue.Ticket?
    /// Password whose refusal is not reported yet.
    var refused: Int?
    var next: Next
}
