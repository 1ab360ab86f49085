// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets

/// The server of a schedule, which counts what a careless client would lock accounts with, and the store of credentials.
struct ModelServer {
    /// What the server knows of one credential name.
    struct Account {
        /// The password that it takes, and the one in the store.
        var password = 0
        var stored = 0
        /// The passwords that it has taken at some time.
        var taken: Set<Int> = [0]
        /// How often each was refused since an operator last opened the latches.
        var refusals: [Int: Int] = [:]
        /// The attempts that remain before it locks, as it tells whoever it challenges.
        var remaining = 2
        /// How often each step of its one-time passwords was used.
        var codes: [Int64: Int] = [:]
    }

    var accounts: [String: Account] = [:]
    var isDown = false
    /// The tokens that it takes, each with the credential that won it.
    private var tokens: [String: String] = [:]
    private var lastToken = 0

    /// Whether it takes that password; a refusal counts.
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

    /// A password came with the code of a step.
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

    /// A restart: all sessions are gone.
    mutating func restart() { tokens = [:] }

    func stored(_ name: String) -> Int { accounts[name]?.stored ?? 0 }
}

/// A resource of the server: one that is not for every user whom it knows.
enum ModelResource {
    static let forbidden = 0
    static let all = 0..<2
}

/// A login that runs.
struct ModelLogin {
    var key: SessionKey
    /// The password as it was looked up when the login began; `nil`: a latch was closed, and nothing is sent.
    var password: Int?
    /// True if it sends nothing and ends by its deadline only.
    var isHanging = false
}

/// An exchange under way.
enum ModelExchange {
    case waiting(SessionKey, resource: Int)
    /// Sent with a session, as the one who tries it or as one of many.
    case sent(SessionKey, HeldSession, resource: Int, isUnverified: Bool, rounds: Int)
}

/// What the schedules are about: two scopes of one client, the same challenge by another's credential, and a scheme
/// whose sessions no answer has proven, by two users' credentials.
enum ModelKeys {
    private static let origin = Origin(scheme: .https, host: "bank.example")
    static let all = [
        SessionKey(origin: origin, challenge: "bank", credential: "ann"),
        SessionKey(origin: origin, challenge: "bank", credential: "ann", scope: "accounts"),
        SessionKey(origin: origin, challenge: "bank", credential: "bob"),
        SessionKey(origin: origin, challenge: "corp", credential: "carl"),
        SessionKey(origin: origin, challenge: "corp", credential: "dora"),
    ]

    /// True of a login with a one-time password.
    static func hasCodes(_ key: SessionKey) -> Bool { key.credential == "bob" }

    static func isUnverified(_ key: SessionKey) -> Bool { key.challenge == "corp" }

    static func latch(_ key: SessionKey) -> LatchKey {
        LatchKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}

extension HeldSession {
    /// What goes along with a request of the model: `credential/number`.
    var text: String { session.fields.first?.value.revealText() ?? "" }

    /// The password of a session that is one.
    var password: Int? { text.split(separator: "=").last.flatMap { Int($0) } }
}

/// The disk of a schedule: each write takes a while, in which anything can happen, a crash included.
struct ModelDisk {
    /// What is on it.
    private(set) var record = AttemptRecord()
    /// What is on its way to it.
    var queue = AttemptQueue()
    private var writing: (changes: [AttemptChange], record: AttemptRecord)?

    /// Ends the write that is under way, or begins one. Returns the number of changes that it wrote.
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

    /// The process is killed; the write that is under way may have come to its end.
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

/// Something that goes on when a change is on disk.
struct ModelWrite {
    enum Next {
        /// The password goes out, with the code of a step.
        case send(Int, code: Int64)
        /// The login is over.
        case finish(Result<Session, LoginFailure>)
        /// The session that was in doubt is over.
        case end(generation: UInt64, LoginFailure)
    }

    var key: SessionKey
    /// The change; `nil` if there is nothing to write.
    var ticket: AttemptQueue.Ticket?
    /// The password that the server refused, which nobody was told yet.
    var refused: Int?
    var next: Next
}
