// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
internal import Synchronization

/// The fields that nobody wants to store (`credentials.ask`): asked for when they are needed, and kept in memory only.
///
/// One prompt at a time for each field, whoever waits for it. An answer stays, also where it was rejected: its latch is
/// closed then, and only an operator's `unlatch` has it forgotten and asked for anew. After a prompt that nobody answered
/// there is no other for a while, lest a service that is asked for every second be a nuisance.
package final class AskedFields: Sendable {
    private struct Field: Hashable, Sendable {
        let credential: String
        let name: String
    }

    private typealias Waiter = CheckedContinuation<Result<Secret, CredentialError>, Never>

    private enum State {
        case answered(Secret)
        case asking([Waiter])
        case refused(CredentialError, until: ContinuousClock.Instant)
    }

    private let asker: any SecretAsker
    private let pause: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onThread: ThreadStart
    private let states = Mutex<[Field: State]>([:])

    /// Fields that `asker` asks for; not again within `pause` where it got no answer.
    package init(
        asker: any SecretAsker, pause: Duration = .seconds(60),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        onThread: @escaping ThreadStart = startThread
    ) {
        self.onThread = onThread
        self.asker = asker
        self.pause = pause
        self.now = now
    }

    /// The answer for that field of a credential, asked for where there is none yet. Throws an error that `isAbsent` where
    /// nobody gave one.
    package func value(of credential: String, _ name: String) async throws(CredentialError) -> Secret {
        let field = Field(credential: credential, name: name)
        let result = await withCheckedContinuation { (waiter: Waiter) in
            let (known, asks) = states.withLock { states -> (Result<Secret, CredentialError>?, Bool) in
                switch states[field] {
                case .answered(let answer): return (.success(answer), false)
                case .asking(let waiters):
                    states[field] = .asking(waiters + [waiter])
                    return (nil, false)
                case .refused(let error, let until) where until > now(): return (.failure(error), false)
                case .refused, nil:
                    states[field] = .asking([waiter])
                    return (nil, true)
                }
            }
            if let known { waiter.resume(returning: known) }
            if asks { beginAsking(field) }
        }
        return try result.get()
    }

    /// The answer that is there already.
    func known(of credential: String, _ name: String) -> Secret? {
        states.withLock { states in
            if case .answered(let answer) = states[Field(credential: credential, name: name)] { answer } else { nil }
        }
    }

    /// Forgets what was answered, or not answered, for that credential: it is asked for again when it is needed.
    package func forget(_ credential: String) {
        states.withLock { states in
            for (field, state) in states where field.credential == credential {
                // What is being asked goes on: there is one prompt already.
                if case .asking = state { continue }
                states[field] = nil
            }
        }
    }

    /// Forgets which prompts nobody answered.
    package func forgetRefusals() {
        states.withLock { states in
            states = states.filter { if case .refused = $0.value { false } else { true } }
        }
    }

    private func beginAsking(_ field: Field) {
        do throws(ThreadError) {
            try onThread { self.ask(field) }
        } catch {
            // Nobody was asked, so the next may be at once.
            end(
                field,
                .failure(CredentialError(reason: "The field \"\(field.name)\" could not be asked for: \(error).")),
                isRefusal: false)
        }
    }

    private func ask(_ field: Field) {
        let result = Result { () throws(CredentialError) in
            do throws(AskFailure) {
                return try asker.ask(
                    "the \(field.name) of \(field.credential)", id: "countersign:\(field.credential):\(field.name)")
            } catch {
                throw CredentialError(
                    reason: "The field \"\(field.name)\" of the credential \"\(field.credential)\" was asked for, but "
                        + "\(error.reason).", isAbsent: true)
            }
        }
        end(field, result, isRefusal: true)
    }

    /// Tells all who wait for that field.
    private func end(_ field: Field, _ result: Result<Secret, CredentialError>, isRefusal: Bool) {
        let waiters = states.withLock { states -> [Waiter] in
            guard case .asking(let waiters) = states[field] else { return [] }
            switch result {
            case .success(let answer): states[field] = .answered(answer)
            case .failure(let error): states[field] = isRefusal ? .refused(error, until: now() + pause) : nil
            }
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }
}
